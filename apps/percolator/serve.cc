// percolator serve: store, oracle and coordination for many processes.

#include <iostream>
#include <memory>
#include <string>

#include "apps/percolator/commands.h"
#include "apps/percolator/listing.h"
#include "apps/percolator/signals.h"
#include "apps/percolator/text.h"
#include "percolator/server.h"
#include "percolator/status_macros.h"

namespace percolator::cli {
namespace {

struct ServeArguments {
  ServerOptions server;
  bool no_sync = false;
  std::string session_ttl = "5s";
};

void PrintReady(const Shell& shell, const ServeArguments& arguments, const Server& server) {
  if (shell.json) {
    PrintJson(std::cout, {{"address", server.address()}, {"port", server.port()}});
  } else {
    const std::string data = arguments.server.data.empty() ? "memory, forgotten at the end" : arguments.server.data;
    std::cout << "ready on " << server.address() << "\ndata in  " << data << "\nCtrl-C stops it\n";
  }
  std::cout.flush();
}

// Data that another process has open is out of reach, as it is for the other commands.
absl::Status CantServe(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) ? absl::UnavailableError(why.message()) : why;
}

absl::StatusOr<Exit> Serve(const Shell& shell, ServeArguments arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(arguments.server.session_ttl, ParseDuration(arguments.session_ttl));
  arguments.server.store.durability = arguments.no_sync ? Durability::kNoSync : Durability::kSync;
  const StopSignals stop;
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(arguments.server);
  if (!server.ok()) return CantServe(server.status());
  PrintReady(shell, arguments, **server);
  stop.Wait();
  stop.Unblock();
  Note("stopping: requests under way are finished; again to end at once");
  PERCOLATOR_RETURN_IF_ERROR((*server)->Stop());
  return Exit::kDone;
}

}  // namespace

void AddTlsOptions(CLI::App& command, TlsFiles* tls, bool* allow_plaintext) {
  command.add_option("--tls-cert", tls->cert, "Speak TLS, with this certificate (PEM)")->type_name("FILE");
  command.add_option("--tls-key", tls->key, "The certificate's key (PEM)")->type_name("FILE");
  command.add_option("--tls-client-ca", tls->ca, "Only clients with a certificate that this one has signed (PEM)")
      ->type_name("FILE");
  command.add_flag("--plaintext", *allow_plaintext,
                   "Speak plain text beyond this machine: whoever hears it can read and change everything");
}

void AddServe(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* const command = app.add_subcommand("serve", "Serves a store, an oracle and coordination to many processes");
  command->add_option("--listen", arguments->server.listen, "Address to listen on; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command->add_option("--data", arguments->server.data, "Where the data is; without it, it is forgotten at the end")
      ->type_name("DIR");
  command->add_flag(
      "--no-sync", arguments->no_sync,
      "Acknowledge writes that are with the operating system: quicker, the last may be lost with the power");
  AddTlsOptions(*command, &arguments->server.tls, &arguments->server.allow_plaintext);
  command->add_option("--session-ttl", arguments->session_ttl, "A process that is silent for this long counts as dead")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_flag("--bigtable-writes-all", arguments->server.bigtable_writes_all,
                    "Let clients of Bigtable's API write tables of transactions too, which can damage them");
  command->add_option("--threads", arguments->server.threads, "Requests to the store worked on at once")
      ->type_name("N")
      ->capture_default_str();
  command->footer(R"(Examples:
  percolator serve --data /var/lib/percolator
  percolator --cluster percolator://127.0.0.1:7820 tables
  percolator serve --listen 0.0.0.0:7820 --data DIR --tls-cert cert.pem --tls-key key.pem
  percolator --cluster 'percolator://db.example:7820?ca=ca.pem' tables

It prints a line with its address when it is ready, and ends with SIGTERM or Ctrl-C, after the requests under way.
The directory is that of rocksdb:DIR: what one process has created can be served, and the other way round.
Clients of Bigtable's API, version 2, can look at the data too: docs/serving.md.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Serve(shell, *arguments); }); });
}

}  // namespace percolator::cli
