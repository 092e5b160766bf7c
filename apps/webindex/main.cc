// SPDX-License-Identifier: Apache-2.0

// webindex: a search index of a folder of pages that is always up to date. See webindex --help.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/answers.h"
#include "apps/webindex/api.h"
#include "apps/webindex/index.h"
#include "apps/webindex/interrupt.h"
#include "apps/webindex/print.h"
#include "apps/webindex/server.h"
#include "apps/webindex/watch.h"
#include "percolator/file.h"
#include "percolator/status_macros.h"

namespace {

using nlohmann::json;
using percolator::LoadProgress;
using webindex::Announcement;
using webindex::Answers;
using webindex::Api;
using webindex::CrawlResult;
using webindex::IndexingProgress;
using webindex::Interrupt;
using webindex::Presence;
using webindex::Printable;
using webindex::Server;
using webindex::Watch;
using webindex::WebIndex;
using webindex::WebIndexOptions;
using webindex::WithCommas;

// Exit codes.
constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kFoundNothing = 3;  // the query has no hits, or the page does not exist

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr int kLooksWhileFollowing = 10;

struct Options {
  std::string data = "webindex-data";
  std::string cluster;  // address; empty: the cluster is in the data folder
  bool as_json = false;

  // run
  std::string docs;
  std::optional<int> port;
  std::string base;
  std::string list;
  bool watch = true;
  bool once = false;
  bool sync = false;
  int threads = 4;

  // query, explain
  std::vector<std::string> words;
  size_t limit = 10;
  std::string url;
};

int Fail(const absl::Status& status) {
  std::cerr << "webindex: " << std::string(status.message()) << "\n";
  return absl::IsNotFound(status) ? kFoundNothing : kFailed;
}

// --- run

// Shows progress: a bar on a terminal, otherwise a line for each update.
class ProgressLine {
 public:
  // `expected` is zero if unknown.
  void Show(uint64_t done, uint64_t expected, const std::string& text) {
    const std::scoped_lock lock(mutex_);
    if (!terminal_) {
      std::cout << text << std::endl;
      return;
    }
    constexpr uint64_t kWidth = 30;
    const uint64_t full = expected == 0 ? 0 : std::min(kWidth, kWidth * done / expected);
    std::cout << "\r\033[K[" << std::string(full, '#') << std::string(kWidth - full, '.') << "] " << text << std::flush;
    open_ = true;
  }

  // Prints a line that stays, above the bar.
  void Say(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    std::cout << (std::exchange(open_, false) ? "\r\033[K" : "") << text << std::endl;
  }

 private:
  const bool terminal_ = isatty(STDOUT_FILENO) != 0;
  std::mutex mutex_;
  bool open_ = false;  // protected by mutex_
};

constexpr size_t kListBytes = 256 << 20;

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& file) {
  PERCOLATOR_ASSIGN_OR_RETURN(const std::string text, percolator::ReadWholeFile(file, kListBytes));
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) lines.push_back(line);
  }
  if (lines.empty()) {
    return absl::InvalidArgumentError(
        "the list " + file +
        " is empty, so indexing it would remove every page: name at least one file in it, or delete the data folder to "
        "start again");
  }
  return lines;
}

// The life of `webindex run`.
class Run {
 public:
  Run(const Options& options, Interrupt* interrupt) : options_(options), interrupt_(interrupt) {}

  absl::Status Everything();

 private:
  absl::StatusOr<WebIndexOptions> MakeOptions();
  absl::Status Open();
  absl::Status Serve();
  absl::Status Index();
  [[noreturn]] void LeaveWhileLoading();
  absl::Status Settle();
  absl::Status Follow();
  bool FollowChange(const std::string& path);
  void Loading(const LoadProgress& progress);
  std::string PageAddress() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }

  const Options& options_;
  Interrupt* const interrupt_;
  ProgressLine line_;
  int port_ = 0;
  uint64_t files_ = 0;
  std::atomic<bool> loading_{false};    // the whole folder, at the start
  std::atomic<bool> following_{false};  // a change is being loaded
  absl::Status trouble_;                // the last error of following changes; used by that thread only

  // Each uses those above it, so the order of destruction matters.
  std::unique_ptr<WebIndex> index_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Announcement> announcement_;
  std::unique_ptr<Watch> watch_;
};

absl::StatusOr<WebIndexOptions> Run::MakeOptions() {
  WebIndexOptions options;
  options.address = options_.cluster.empty() ? webindex::ClusterIn(options_.data) : options_.cluster;
  // A power failure may lose the last commits. The next start computes them again from the folder.
  options.cluster.store.durability = options_.sync ? percolator::Durability::kSync : percolator::Durability::kNoSync;
  options.worker.threads = options_.threads;
  options.crawl.folder = options_.docs;
  options.crawl.base = options_.base;
  options.crawl.threads = options_.threads;
  if (!options_.list.empty()) {
    options.crawl.only_listed = true;
    PERCOLATOR_ASSIGN_OR_RETURN(options.crawl.list, ReadLines(options_.list));
  }
  options.crawl.on_progress = [this](const LoadProgress& progress) { Loading(progress); };
  options.crawl.on_problem = [this](const std::string& path, const std::string& why) {
    line_.Say("skipped or truncated: " + Printable(path) + ": " + Printable(why));
  };
  return options;
}

void Run::Loading(const LoadProgress& progress) {
  if (!loading_) return;  // it is a change of the folder, which is not shown
  api_->SetProgress({.phase = IndexingProgress::Phase::kLoading,
                     .done = progress.done,
                     .expected = progress.expected,
                     .per_second = progress.per_second});
  line_.Show(
      progress.done, progress.expected,
      "loading: " + percolator::ToString(progress) + ", " + WithCommas(index_->serving().documents()) + " searchable");
}

absl::Status Run::Open() {
  std::error_code error;
  if (!std::filesystem::is_directory(options_.docs, error)) {
    return absl::NotFoundError("there is no folder " + options_.docs + ": name the folder with the pages with --docs");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(const WebIndexOptions options, MakeOptions());
  std::filesystem::create_directories(options_.data, error);
  if (error) return absl::UnavailableError("cannot create the data folder " + options_.data + ": " + error.message());
  absl::StatusOr<std::unique_ptr<WebIndex>> index = WebIndex::Open(options);
  if (!index.ok()) {
    const std::optional<Presence> server = webindex::FindServer(options_.data);
    if (!server.has_value() && absl::IsFailedPrecondition(index.status())) {
      return absl::FailedPreconditionError(
          std::string(index.status().message()) +
          " (if a webindex is starting or stopping there, try again; --data names another folder)");
    }
    if (!server.has_value()) return index.status();
    return absl::FailedPreconditionError("the data folder " + options_.data +
                                         " is in use by the server at http://127.0.0.1:" +
                                         std::to_string(server->port) + "/: use that, or another folder with --data");
  }
  index_ = *std::move(index);
  return absl::OkStatus();
}

absl::Status Run::Serve() {
  const std::string instance = webindex::NewInstance();
  api_ = std::make_unique<Api>(index_->cluster(), &index_->worker(), &index_->serving(),
                               webindex::ApiOptions{.folder = options_.docs,
                                                    .base = options_.base,
                                                    .data = options_.cluster.empty() ? options_.data : "",
                                                    .instance = instance});
  api_->SetProgress({.phase = IndexingProgress::Phase::kLoading});
  server_ =
      std::make_unique<Server>(api_.get(), webindex::ServerOptions{.port = options_.port, .folder = options_.docs});
  PERCOLATOR_ASSIGN_OR_RETURN(port_, server_->Start());
  PERCOLATOR_ASSIGN_OR_RETURN(announcement_, Announcement::Make(options_.data, {port_, instance}));
  line_.Say("indexing " + options_.docs + "; search while it runs: http://127.0.0.1:" + std::to_string(port_) + "/");
  return absl::OkStatus();
}

// Starts to follow changes of the folder. Called before the first full crawl, so that no change is missed.
absl::Status Run::Follow() {
  if (!options_.watch || options_.once) return absl::OkStatus();
  watch_ = std::make_unique<Watch>(options_.docs, [this](const std::string& path) {
    following_ = true;
    const bool done = interrupt_->requested() || FollowChange(path);
    following_ = false;
    return done;
  });
  return watch_->Start();
}

bool Run::FollowChange(const std::string& path) {
  const absl::Status done = path.empty() ? index_->Update().status() : index_->crawl().Refresh(path);
  // Watch tries again every second. An error that stays the same is printed once.
  if (!done.ok() && done != trouble_) {
    line_.Say("cannot follow a change of " + (path.empty() ? "the folder" : Printable(path)) + ": " +
              std::string(done.message()) + "; trying again");
  }
  trouble_ = done;
  return done.ok();
}

// Loads in its own thread, because loading waits for observers that are behind and cannot be interrupted.
absl::Status Run::Index() {
  loading_ = true;
  auto loaded = std::make_shared<std::promise<absl::StatusOr<CrawlResult>>>();
  std::future<absl::StatusOr<CrawlResult>> future = loaded->get_future();
  std::thread([index = index_.get(), loaded] { loaded->set_value(index->Update()); }).detach();
  while (future.wait_for(kLook) != std::future_status::ready) {
    if (interrupt_->requested()) LeaveWhileLoading();
  }
  loading_ = false;
  PERCOLATOR_ASSIGN_OR_RETURN(const CrawlResult result, future.get());
  files_ = result.loaded + result.unchanged;
  line_.Say("loaded " + WithCommas(result.loaded) + " files; " + WithCommas(result.unchanged) + " unchanged, " +
            WithCommas(result.deleted) + " deleted, " + WithCommas(result.problems) + " skipped or truncated");
  return absl::OkStatus();
}

// Exits without waiting: committed files stay, and the next start loads the others.
void Run::LeaveWhileLoading() {
  line_.Say("stopped while loading; the next start continues");
  announcement_.reset();
  server_.reset();
  index_->worker().Stop().IgnoreError();
  std::_Exit(kGood);
}

// Waits until all loaded pages are searchable.
absl::Status Run::Settle() {
  api_->SetProgress({.phase = IndexingProgress::Phase::kIndexing, .expected = files_});
  while (!interrupt_->requested()) {
    absl::Status idle = index_->WaitUntilIdle(std::chrono::seconds(1));
    if (idle.ok()) {
      api_->SetProgress({.phase = IndexingProgress::Phase::kReady});
      return idle;
    }
    if (!absl::IsDeadlineExceeded(idle)) return idle;
    const auto backlog = index_->cluster().CountNotifications();
    const size_t documents = index_->serving().documents();
    line_.Show(documents, files_,
               "indexing: " + WithCommas(documents) + " documents searchable, " +
                   (backlog.ok() ? WithCommas(backlog->cells) : "some") + " notifications pending");
  }
  return absl::CancelledError("stopped before everything was indexed; the next start continues");
}

absl::Status Run::Everything() {
  absl::Status status = Open();
  if (status.ok()) status = Serve();
  if (status.ok()) status = Follow();
  if (status.ok()) status = Index();
  if (status.ok()) status = Settle();
  if (status.ok()) {
    line_.Say(WithCommas(index_->serving().documents()) + " documents, ready: " + PageAddress() +
              (options_.once ? "" : "  (Ctrl-C stops)"));
  }
  if (status.ok() && !options_.once) interrupt_->Wait();
  if (interrupt_->requested()) {
    line_.Say("stopping; press Ctrl-C again to exit immediately (nothing is lost)");
    // A change of a single file is quick; that of a large folder may not be.
    for (int looks = 0; following_ && looks < kLooksWhileFollowing; ++looks) std::this_thread::sleep_for(kLook);
    if (following_) LeaveWhileLoading();
  }
  watch_.reset();
  announcement_.reset();
  server_.reset();
  if (index_ != nullptr) status.Update(index_->Close());
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

int DoRun(const Options& options, Interrupt* interrupt) {
  const absl::Status status = Run(options, interrupt).Everything();
  return status.ok() ? kGood : Fail(status);
}

// --- query, explain, stats

// Asks a question of api.h, and prints the answer. `print` returns the exit code.
int DoAsk(const Options& options, const std::string& function, const std::map<std::string, std::string>& parameters,
          const std::function<int(const json& answer, bool bold)>& print) {
  const absl::StatusOr<std::unique_ptr<Answers>> answers = Answers::Open(options.data, options.cluster);
  if (!answers.ok()) return Fail(answers.status());
  const absl::StatusOr<json> answer = (*answers)->Ask(function, parameters);
  if (!answer.ok()) return Fail(answer.status());
  if (options.as_json) {
    std::cout << answer->dump(2, ' ', false, json::error_handler_t::replace) << "\n";
    return kGood;
  }
  return print(*answer, isatty(STDOUT_FILENO) != 0);
}

int DoQuery(const Options& options) {
  std::string query;
  for (const std::string& word : options.words) query += (query.empty() ? "" : " ") + word;
  return DoAsk(options, "search", {{"q", query}, {"limit", std::to_string(options.limit)}},
               [](const json& answer, bool bold) {
                 webindex::PrintSearch(answer, bold, std::cout);
                 return answer["hits"].empty() ? kFoundNothing : kGood;
               });
}

int DoExplain(const Options& options) {
  return DoAsk(options, "page", {{"url", options.url}}, [](const json& answer, bool bold) {
    webindex::PrintPage(answer, bold, std::cout);
    return kGood;
  });
}

int DoStats(const Options& options) {
  return DoAsk(options, "stats", {}, [](const json& answer, bool) {
    webindex::PrintStats(answer, std::cout);
    return kGood;
  });
}

// --- The command line

constexpr char kExamples[] = R"(
EXAMPLES
  webindex run --docs ~/site                 index a folder, serve the web page, follow changes
  webindex run --docs ~/site --base https://docs.example.org/
                                             also follow links to this address as links within the folder
  webindex run --docs ~/site --once          update the index, then exit
  webindex query vacuum freeze               search from the command line
  webindex explain manual/index.html         show everything that the index knows about a page
  webindex stats --json                      count pages, links and terms, as JSON

query, explain and stats ask the running server of the data folder. If none runs, they read the folder themselves.

EXIT CODES
  0  done    1  failed, with a message    3  nothing found    others: wrong arguments
)";

void AddCommon(CLI::App* command, Options& options) {
  command->add_option("--data", options.data, "Folder of the index")->capture_default_str();
  command->add_option("--cluster", options.cluster, "Address of the cluster; default: a cluster in the data folder");
}

CLI::App* AddRun(CLI::App& app, Options& options) {
  CLI::App* run = app.add_subcommand("run", "Indexes a folder, serves the web page, follows changes");
  AddCommon(run, options);
  run->add_option("--docs", options.docs, "Folder with the pages")->required();
  run->add_option("--port", options.port,
                  "Port of the web page on 127.0.0.1; 0: any free port; default: 8080, or the next free port")
      ->check(CLI::Range(0, 65535));
  run->add_option("--base", options.base,
                  "Address of the folder on the web; links with this prefix lead into the folder");
  run->add_option("--list", options.list, "Index only the files that this file lists, one path or URL per line");
  run->add_flag("--watch,!--no-watch", options.watch, "Follow changes of the folder; default: yes");
  run->add_flag("--once", options.once, "Exit when everything is indexed");
  run->add_flag("--sync", options.sync, "Wait for the disk at every commit: slower, but a power failure loses nothing");
  run->add_option("--threads", options.threads, "Threads that load files; as many run observers")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  return run;
}

CLI::App* AddAsking(CLI::App& app, Options& options, const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  AddCommon(command, options);
  command->add_flag("--json", options.as_json, "Print JSON");
  return command;
}

// If memory or threads run out in any thread, prints a message and exits without a core file.
[[noreturn]] void OnTerminate() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    std::fputs("webindex: terminated by an exception of unknown type\n", stderr);
  } catch (const std::bad_alloc&) {
    std::fputs("webindex: out of memory: raise the limit (ulimit -v), or lower --threads\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "webindex: %s: check the limits of memory, threads and files (ulimit -v, -u, -n)\n",
                 error.what());
  } catch (...) {
    std::fputs("webindex: terminated by an exception of unknown type\n", stderr);
  }
  std::_Exit(kFailed);
}

// Returns `exit`, or kFailed if the output could not be written.
int Written(int exit) {
  if (std::cout.flush()) return exit;
  std::cerr << "webindex: cannot write the output: the disk is full, or the reader has closed the pipe\n";
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(OnTerminate);
  Options options;
  CLI::App app("A search index of a folder of pages that is always up to date.", "webindex");
  app.footer(kExamples);
  app.require_subcommand(1);
  const CLI::App* const run = AddRun(app, options);
  CLI::App* const query = AddAsking(app, options, "query", "Searches the index");
  query->add_option("WORDS", options.words, "Words to search for")->required();
  query->add_option("--limit", options.limit, "Maximum number of hits")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  CLI::App* const explain = AddAsking(app, options, "explain", "Shows everything that the index knows about a page");
  explain->add_option("URL", options.url, "Path of the page below the folder")->required();
  const CLI::App* const stats = AddAsking(app, options, "stats", "Counts pages, links and terms");
  CLI11_PARSE(app, argc, argv);

  if (*run) {
    Interrupt interrupt;
    return DoRun(options, &interrupt);
  }
  if (*query) return Written(DoQuery(options));
  if (*explain) return Written(DoExplain(options));
  return *stats ? Written(DoStats(options)) : kFailed;
}
