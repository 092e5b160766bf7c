// SPDX-License-Identifier: Apache-2.0

// percolator serve: serves a store, an oracle and coordination to many processes.

#include <malloc.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

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
    const std::string data = arguments.server.data.empty() ? "memory, lost at exit" : arguments.server.data;
    std::cout << "ready on " << server.address() << "\ndata in  " << data << "\nCtrl-C stops the server\n";
  }
  std::cout.flush();
}

// If another process has the data open, the exit code is kUnreachable, as for the other commands.
absl::Status CannotServe(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) ? absl::UnavailableError(why.message()) : why;
}

absl::StatusOr<Exit> Serve(const Shell& shell, ServeArguments arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(arguments.server.session_ttl, ParseDuration(arguments.session_ttl));
  arguments.server.store.durability = arguments.no_sync ? Durability::kNoSync : Durability::kSync;
  // By default there are eight arenas for each processor, and memory that becomes free in one is not used by others.
  mallopt(M_ARENA_MAX, static_cast<int>(std::max(2U, std::thread::hardware_concurrency())));
  const StopSignals stop;
  const absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(arguments.server);
  if (!server.ok()) return CannotServe(server.status());
  PrintReady(shell, arguments, **server);
  stop.Wait();
  stop.Unblock();
  Note("draining requests; press Ctrl-C again to exit immediately");
  PERCOLATOR_RETURN_IF_ERROR((*server)->Stop());
  return Exit::kDone;
}

}  // namespace

void AddTlsOptions(CLI::App& command, TlsFiles* tls, bool* allow_plaintext) {
  command.add_option("--tls-cert", tls->cert, "Use TLS with this certificate (PEM)")->type_name("FILE");
  command.add_option("--tls-key", tls->key, "Key of the certificate (PEM)")->type_name("FILE");
  command.add_option("--tls-client-ca", tls->ca, "Accept only clients with a certificate signed by this CA (PEM)")
      ->type_name("FILE");
  command.add_flag(
      "--plaintext", *allow_plaintext,
      "Allow plain text on an address other than loopback: anyone on the network can read and change all data");
}

void AddServe(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* const command = app.add_subcommand("serve", "Serves a store, an oracle and coordination to many processes");
  command->add_option("--listen", arguments->server.listen, "Address to listen on; port 0 picks a free port")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command
      ->add_option("--data", arguments->server.data,
                   "Directory of the data; without it, data is in memory and lost at exit")
      ->type_name("DIR");
  command->add_flag(
      "--no-sync", arguments->no_sync,
      "Acknowledge a write once the operating system has it: faster, but a power failure may lose the last writes");
  AddTlsOptions(*command, &arguments->server.tls, &arguments->server.allow_plaintext);
  command->add_option("--session-ttl", arguments->session_ttl, "A process that is silent for this long counts as dead")
      ->type_name("DURATION")
      ->capture_default_str();
  command->add_flag("--bigtable-writes-all", arguments->server.bigtable_writes_all,
                    "Allow clients of the Bigtable API to write to tables of transactions, which can damage them");
  command->add_option("--threads", arguments->server.threads, "Maximum number of requests that the store runs at once")
      ->type_name("N")
      ->capture_default_str();
  command->footer(R"(Examples:
  percolator serve --data /var/lib/percolator
  percolator --cluster percolator://127.0.0.1:7820 tables
  percolator serve --listen 0.0.0.0:7820 --data DIR --tls-cert cert.pem --tls-key key.pem
  percolator --cluster 'percolator://db.example:7820?ca=ca.pem' tables

Prints its address when it is ready. SIGTERM or Ctrl-C stops it after the running requests; a second Ctrl-C exits
immediately. The directory is that of rocksdb:DIR, so a store can be used by one process first and served later, or the
other way round. Clients of the Bigtable API, version 2, can read the data too: docs/serving.md.)");
  command->callback([&shell, arguments] { shell.Choose([&shell, arguments] { return Serve(shell, *arguments); }); });
}

}  // namespace percolator::cli
