// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/postgres_pipeline.h"

#include <filesystem>

#ifndef PERCOLATOR_HAVE_LIBPQ

namespace percolator {

std::unique_ptr<Pipeline> NewPostgresPipeline(const PostgresOptions& /*options*/, ObservedFunction /*observed*/,
                                              std::string* why) {
  *why = "built without libpq (Debian: libpq-dev)";
  return nullptr;
}

}  // namespace percolator

#else

#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace percolator {
namespace {

constexpr char kBinaries[] = "/usr/lib/postgresql/15/bin/";
// The time for which a worker without work waits for a NOTIFY before it looks into the queue.
constexpr int kSafetyNetMs = 100;

[[noreturn]] void Die(const char* what, const PGconn* connection) {
  std::fprintf(stderr, "notify: postgres: %s: %s", what, PQerrorMessage(connection));
  std::exit(1);
}

// PostgreSQL refuses to run as root.
bool BecomePostgres() {
  if (getuid() != 0) return true;
  const passwd* user = getpwnam("postgres");
  return user != nullptr && setgid(user->pw_gid) == 0 && setuid(user->pw_uid) == 0;
}

// Runs a program as the user postgres, its output in a file. Returns its process id.
pid_t Spawn(const std::string& log, std::vector<std::string> arguments) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (chdir("/") != 0 || std::freopen(log.c_str(), "a", stdout) == nullptr || dup2(1, 2) < 0 || !BecomePostgres()) {
    _exit(1);
  }
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(1);
}

class Server {
 public:
  ~Server() {
    if (pid_ <= 0) return;
    kill(pid_, SIGINT);  // a fast shutdown
    waitpid(pid_, nullptr, 0);
  }

  bool Start(const PostgresOptions& options, std::string* why) {
    dir_ = options.dir + "/postgres";
    const std::string log = options.dir + "/postgres.log";
    const std::string initdb = std::string(kBinaries) + "initdb";
    if (!std::filesystem::exists(initdb)) {
      *why = "no " + initdb + " (Debian: postgresql-15)";
      return false;
    }
    std::filesystem::create_directories(dir_);
    std::fclose(std::fopen(log.c_str(), "w"));
    const passwd* user = getpwnam("postgres");
    if (getuid() == 0 && (user == nullptr || chown(dir_.c_str(), user->pw_uid, user->pw_gid) != 0 ||
                          chown(log.c_str(), user->pw_uid, user->pw_gid) != 0)) {
      *why = "there is no user postgres";
      return false;
    }
    std::filesystem::permissions(options.dir, std::filesystem::perms::all);
    std::filesystem::permissions(dir_, std::filesystem::perms::owner_all);
    int status = 0;
    waitpid(Spawn(log, {initdb, "-D", dir_ + "/data", "-A", "trust", "-U", "postgres", "--no-sync"}), &status, 0);
    if (status != 0) {
      *why = "initdb failed, see " + log;
      return false;
    }
    pid_ = Spawn(log, {std::string(kBinaries) + "postgres", "-D", dir_ + "/data", "-k", dir_, "-c",
                       "listen_addresses=", "-c", std::string("synchronous_commit=") + (options.sync ? "on" : "off"),
                       "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"});
    for (int i = 0; i < 100; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      PGconn* connection = PQconnectdb(Address().c_str());
      const bool ready = PQstatus(connection) == CONNECTION_OK;
      PQfinish(connection);
      if (ready) return true;
    }
    *why = "the server does not start, see " + log;
    return false;
  }

  std::string Address() const { return "host=" + dir_ + " user=postgres dbname=postgres"; }

 private:
  std::string dir_;
  pid_t pid_ = 0;
};

class Connection {
 public:
  explicit Connection(const std::string& address) : connection_(PQconnectdb(address.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) Die("connecting", connection_);
  }
  ~Connection() { PQfinish(connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Execute(const char* sql) {
    PGresult* result = PQexec(connection_, sql);
    const ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) Die(sql, connection_);
  }

  void Prepare(const char* name, const char* sql) {
    PGresult* result = PQprepare(connection_, name, sql, 0, nullptr);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) Die(sql, connection_);
    PQclear(result);
  }

  struct Call {
    const char* name;  // of the prepared statement
    std::vector<std::string> parameters;
  };
  // Makes the calls in one round trip. Returns the first row that any of them returned, or an empty row.
  std::vector<std::string> Together(const std::vector<Call>& calls) {
    if (PQenterPipelineMode(connection_) != 1) Die("pipeline mode", connection_);
    for (const Call& call : calls) {
      std::vector<const char*> values;
      for (const std::string& parameter : call.parameters) values.push_back(parameter.c_str());
      if (PQsendQueryPrepared(connection_, call.name, static_cast<int>(values.size()), values.data(), nullptr, nullptr,
                              0) != 1) {
        Die(call.name, connection_);
      }
    }
    if (PQpipelineSync(connection_) != 1) Die("sync", connection_);
    std::vector<std::string> row;
    for (const Call& call : calls) {
      PGresult* result = PQgetResult(connection_);
      const ExecStatusType status = PQresultStatus(result);
      if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) Die(call.name, connection_);
      if (row.empty() && PQntuples(result) > 0) {
        for (int i = 0; i < PQnfields(result); ++i) row.emplace_back(PQgetvalue(result, 0, i));
      }
      PQclear(result);
      PQgetResult(connection_);  // the end of this call
    }
    PQclear(PQgetResult(connection_));  // the sync
    PQexitPipelineMode(connection_);
    return row;
  }

  // Waits for a NOTIFY, or for a while.
  void WaitForNotify() {
    if (!TakeNotifies()) {
      pollfd wanted{.fd = PQsocket(connection_), .events = POLLIN, .revents = 0};
      poll(&wanted, 1, kSafetyNetMs);
      TakeNotifies();
    }
  }

 private:
  bool TakeNotifies() {
    PQconsumeInput(connection_);
    bool any = false;
    while (PGnotify* notify = PQnotifies(connection_)) {
      any = true;
      PQfreemem(notify);
    }
    return any;
  }

  PGconn* const connection_;
};

constexpr char kSchema[] = R"(
CREATE TABLE documents (id bigint PRIMARY KEY, contents text, a text, b text);
CREATE TABLE queue_a (id bigserial PRIMARY KEY, document bigint NOT NULL);
CREATE TABLE queue_b (id bigserial PRIMARY KEY, document bigint NOT NULL);
CREATE FUNCTION contents_changed() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO queue_a(document) VALUES (NEW.id); NOTIFY a; RETURN NULL; END $$;
CREATE FUNCTION a_changed() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO queue_b(document) VALUES (NEW.id); NOTIFY b; RETURN NULL; END $$;
CREATE TRIGGER contents_changed AFTER INSERT OR UPDATE OF contents ON documents
  FOR EACH ROW EXECUTE FUNCTION contents_changed();
CREATE TRIGGER a_changed AFTER UPDATE OF a ON documents FOR EACH ROW EXECUTE FUNCTION a_changed();
)";

class PostgresPipeline final : public Pipeline {
 public:
  explicit PostgresPipeline(ObservedFunction observed) : observed_(std::move(observed)) {}
  ~PostgresPipeline() override {
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
  }

  bool Start(const PostgresOptions& options, std::string* why) {
    if (!server_.Start(options, why)) return false;
    Connection(server_.Address()).Execute(kSchema);
    for (int i = 0; i < options.loaders; ++i) {
      loaders_.push_back(std::make_unique<Connection>(server_.Address()));
      loaders_.back()->Prepare("load",
                               "INSERT INTO documents(id, contents) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET "
                               "contents = EXCLUDED.contents");
    }
    for (int i = 0; i < options.workers; ++i) {
      workers_.emplace_back([this] { Work("a", "contents", nullptr); });
      workers_.emplace_back([this] { Work("b", "a", &observed_); });
    }
    return true;
  }

  void Load(int loader, uint64_t document, const std::string& contents) override {
    loaders_[static_cast<size_t>(loader)]->Together({{"load", {std::to_string(document), contents}}});
  }

 private:
  // Takes a change, reads the column, and writes a value derived from it into the column `stage`.
  void Work(const std::string& stage, const std::string& input, const ObservedFunction* observed) {
    Connection connection(server_.Address());
    connection.Execute(("LISTEN " + stage).c_str());
    connection.Prepare("begin", "BEGIN");
    connection.Prepare("commit", "COMMIT");
    connection.Prepare("take",
                       ("WITH taken AS (DELETE FROM queue_" + stage + " WHERE id = (SELECT id FROM queue_" + stage +
                        " ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING document) SELECT d.id, d." + input +
                        " FROM documents d JOIN taken t ON d.id = t.document")
                           .c_str());
    connection.Prepare("write", ("UPDATE documents SET " + stage + " = $2 WHERE id = $1").c_str());
    while (!stop_) {
      const std::vector<std::string> row = connection.Together({{"begin", {}}, {"take", {}}});
      if (row.empty()) {
        connection.Together({{"commit", {}}});
        connection.WaitForNotify();
        continue;
      }
      connection.Together({{"write", {row[0], Derive(row[1])}}, {"commit", {}}});
      if (observed != nullptr) (*observed)(std::stoull(row[0]));
    }
  }

  const ObservedFunction observed_;
  Server server_;
  std::vector<std::unique_ptr<Connection> > loaders_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace

std::unique_ptr<Pipeline> NewPostgresPipeline(const PostgresOptions& options, ObservedFunction observed,
                                              std::string* why) {
  auto pipeline = std::make_unique<PostgresPipeline>(std::move(observed));
  if (!pipeline->Start(options, why)) return nullptr;
  return pipeline;
}

}  // namespace percolator

#endif  // PERCOLATOR_HAVE_LIBPQ
