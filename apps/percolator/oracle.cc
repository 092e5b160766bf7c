// SPDX-License-Identifier: Apache-2.0

// percolator oracle: runs a replicated oracle. One of several oracles leads and hands out timestamps.

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

// Called by a thread of the server. It writes the line in one piece, so that lines of two threads do not mix.
void PrintLeader(bool json, const std::string& name, bool is_self) {
  if (json) {
    PrintJson(std::cout, {{"leader", name}, {"self", is_self}});
  } else {
    const std::string line = is_self ? "this oracle leads\n" : (name.empty() ? "no oracle" : name) + " leads\n";
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
      app.add_subcommand("oracle", "Runs one of several oracles, of which one leads and hands out timestamps");
  command->add_option("--etcd", server.etcd, "Endpoints of the etcd that elects the leader")
      ->type_name("HOST:PORT,...")
      ->delimiter(',')
      ->required();
  command->add_option("--listen", server.listen, "Address to listen on; port 0 picks a free port")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command->add_option("--name", server.name, "Name of this oracle; default: the listen address")->type_name("NAME");
  command->add_option("--prefix", server.prefix, "Prefix of the keys in etcd; the same for all oracles of a cluster")
      ->type_name("TEXT")
      ->capture_default_str();
  command->add_option("--lease", arguments->lease, "Another oracle takes over when the leader is silent for this long")
      ->type_name("DURATION")
      ->capture_default_str();
  AddTlsOptions(*command, &server.tls, &server.allow_plaintext);
  command->add_option("--etcd-ca", server.etcd_tls.ca, "Use TLS with etcd, and trust this CA certificate (PEM)")
      ->type_name("FILE");
  command->add_option("--etcd-cert", server.etcd_tls.cert, "Client certificate for etcd (PEM)")->type_name("FILE");
  command->add_option("--etcd-key", server.etcd_tls.key, "Key of the client certificate (PEM)")->type_name("FILE");
  command->footer(R"(Examples:
  percolator oracle --etcd 127.0.0.1:2379
  percolator oracle --etcd 127.0.0.1:2379 --listen 127.0.0.1:7822
  percolator --cluster 'bigtable:projects/P/instances/I?oracle=127.0.0.1:7821,127.0.0.1:7822&coord=127.0.0.1:2379' tables

Prints its address when it is ready, and a line whenever the leader changes. SIGTERM or Ctrl-C stops it, and another
oracle takes over at once. Run two or three on different machines. Only the leader answers, and clients find the leader
themselves. Timestamps stay unique and in order across changes of the leader. Never delete the key PREFIX + "oracle" from
etcd: it records which timestamps were handed out. `percolator serve` contains an oracle and does not need this command.)");
  command->callback(
      [&shell, arguments] { shell.Choose([&shell, arguments] { return RunOracle(shell, *arguments); }); });
}

}  // namespace percolator::cli
