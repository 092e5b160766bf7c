// percolator oracle: timestamps for many processes, from one of several oracles.

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

struct OracleArguments {
  OracleServerOptions server;
  std::string lease = "2s";
};

// Called by a thread of the server: one line, written at once.
void PrintLeader(bool json, const std::string& name, bool is_self) {
  if (json) {
    PrintJson(std::cout, {{"leader", name}, {"self", is_self}});
  } else {
    const std::string line = is_self ? "this oracle leads\n" : (name.empty() ? "nobody" : name) + " leads\n";
    std::cout << line;
  }
  std::cout.flush();
}

void PrintReady(bool json, const OracleServer& server) {
  if (json) {
    PrintJson(std::cout, {{"address", server.address()}, {"port", server.port()}});
  } else {
    const std::string line = "ready on " + server.address() + "\n";
    std::cout << line;
  }
  std::cout.flush();
}

absl::StatusOr<Exit> RunOracle(const Shell& shell, OracleArguments arguments) {
  PERCOLATOR_ASSIGN_OR_RETURN(arguments.server.lease, ParseDuration(arguments.lease));
  const bool json = shell.json;
  arguments.server.on_leader = [json](const std::string& name, bool is_self) { PrintLeader(json, name, is_self); };
  const StopSignals stop;
  PERCOLATOR_ASSIGN_OR_RETURN(const std::unique_ptr<OracleServer> server, OracleServer::Start(arguments.server));
  PrintReady(json, *server);
  stop.Wait();
  stop.Unblock();
  server->Stop();
  return Exit::kDone;
}

}  // namespace

void AddOracle(CLI::App& app, Shell& shell) {
  auto arguments = std::make_shared<OracleArguments>();
  OracleServerOptions& server = arguments->server;
  CLI::App* const command =
      app.add_subcommand("oracle", "Hands out timestamps, as one of several oracles of which one leads");
  command->add_option("--etcd", server.etcd, "The members of the etcd that decides who leads")
      ->type_name("HOST:PORT,...")
      ->delimiter(',')
      ->required();
  command->add_option("--listen", server.listen, "Address to listen on; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command->add_option("--name", server.name, "What the others call it; default: the listen address")->type_name("NAME");
  command->add_option("--prefix", server.prefix, "Of its key in etcd: the same for all oracles of a cluster")
      ->type_name("TEXT")
      ->capture_default_str();
  command->add_option("--lease", arguments->lease, "When the leader is silent for longer, another one leads")
      ->type_name("DURATION")
      ->capture_default_str();
  AddTlsOptions(*command, &server.tls, &server.allow_plaintext);
  command
      ->add_option("--etcd-ca", server.etcd_tls.ca, "Speak TLS with etcd, whose certificate this one has signed (PEM)")
      ->type_name("FILE");
  command->add_option("--etcd-cert", server.etcd_tls.cert, "The certificate to show etcd (PEM)")->type_name("FILE");
  command->add_option("--etcd-key", server.etcd_tls.key, "That certificate's key (PEM)")->type_name("FILE");
  command->footer(R"(Examples:
  percolator oracle --etcd 127.0.0.1:2379
  percolator oracle --etcd 127.0.0.1:2379 --listen 127.0.0.1:7822
  percolator --cluster 'bigtable:projects/P/instances/I?oracle=127.0.0.1:7821,127.0.0.1:7822&coord=127.0.0.1:2379' tables

It prints a line with its address when it is ready, another whenever another oracle leads, and ends with SIGTERM or
Ctrl-C; then another one takes over at once. Run two or three, on different machines. Only the leader answers, and
clients find it by themselves. Timestamps stay unique and in order whoever leads. Never delete the key PREFIX + "oracle"
from etcd: it says which timestamps were handed out. `percolator serve` has an oracle of its own and needs none of this.)");
  command->callback(
      [&shell, arguments] { shell.Choose([&shell, arguments] { return RunOracle(shell, *arguments); }); });
}

}  // namespace percolator::cli
