// SPDX-License-Identifier: Apache-2.0

#include "apps/webindex/crawl.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "apps/webindex/originals.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "apps/webindex/url.h"
#include "percolator/status_macros.h"

namespace webindex {

using percolator::ReadWrite;
using percolator::RowRange;

struct FileRead {
  FileStat stat;         // from before the file was read
  std::string contents;  // of a page
  FileState state;       // of another file
};

namespace {

// --- Files -----------------------------------------------------------------------------------------------------------------

int64_t Nanos(const timespec& time) { return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

FileStat StatOf(const struct stat& file) {
  FileStat stat;
  stat.set_modified_nanos(Nanos(file.st_mtim));
  stat.set_changed_nanos(Nanos(file.st_ctim));
  stat.set_bytes(static_cast<uint64_t>(file.st_size));
  return stat;
}

bool IsSameFile(const FileStat& a, const FileStat& b) {
  return a.modified_nanos() == b.modified_nanos() && a.changed_nanos() == b.changed_nanos() && a.bytes() == b.bytes();
}

// The clock of file systems moves in steps. A file that was changed just before it was loaded may have changed again just after,
// with the same stat.
constexpr int64_t kStepMicros = 100'000;

// Returns true if the file has certainly not changed since it was loaded.
bool IsUnchanged(const FileStat& loaded, const FileStat& now) {
  return IsSameFile(loaded, now) && now.changed_nanos() / 1000 + kStepMicros < loaded.loaded_micros();
}

bool HasExtension(std::string_view path, std::initializer_list<std::string_view> extensions) {
  const size_t dot = path.rfind('.');
  return dot != std::string_view::npos &&
         std::find(extensions.begin(), extensions.end(), path.substr(dot + 1)) != extensions.end();
}

// Returns the first words of a text file.
std::string ExcerptOf(std::string_view path, std::string_view beginning) {
  if (HasExtension(path, {"inc", "ssi"})) {  // a part of a page
    return std::string(CutAtCharacter(ParsePage("", path, beginning).text.body(), kMaxExcerptBytes));
  }
  if (!HasExtension(path, {"txt", "text", "md", "rst"})) return "";
  std::string words;
  for (const char c : ToValidUtf8(beginning)) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space) words += c;
    if (space && !words.empty() && words.back() != ' ') words += ' ';
  }
  words.resize(CutAtCharacter(words, kMaxExcerptBytes).size());
  return words;
}

constexpr size_t kMaxExcerptInput = 4096;  // bytes of the file

// Reads a whole file in pieces.
absl::Status ReadPieces(int fd, const std::function<void(std::string_view)>& piece) {
  std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::InternalError(std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) return absl::OkStatus();
    piece(std::string_view(buffer.data(), static_cast<size_t>(got)));
  }
}

absl::Status ReadPage(int fd, FileRead& file) {
  file.contents.clear();
  return ReadPieces(
      fd, [&](std::string_view piece) { file.contents += piece.substr(0, kMaxContents - file.contents.size()); });
}

absl::Status ReadOther(int fd, std::string_view path, FileRead& file) {
  Hasher hasher;
  std::string beginning;
  uint64_t bytes = 0;
  absl::Status status = ReadPieces(fd, [&](std::string_view piece) {
    hasher.Add(piece);
    bytes += piece.size();
    beginning += piece.substr(0, kMaxExcerptInput - beginning.size());
  });
  file.state.set_bytes(bytes);
  file.state.set_hash(hasher.Finish().low);
  file.state.set_excerpt(ExcerptOf(path, beginning));
  return status;
}

constexpr int kMaxReadings = 5;

// Reads the file. Returns nullopt if it has not changed since `loaded`, and NotFound if it does not exist or is not a regular
// file. If the file changes meanwhile, reads it again, up to kMaxReadings times. After the last, its stat differs from that of
// the file, so the next crawl loads it again.
absl::StatusOr<std::optional<FileRead>> ReadIfChanged(const std::string& folder, const std::string& path,
                                                      const FileStat& loaded) {
  FileRead file;
  for (int reading = 0; reading < kMaxReadings; ++reading) {
    PERCOLATOR_ASSIGN_OR_RETURN(const Descriptor opened, OpenBelow(folder, path));
    struct stat before {};
    struct stat after {};
    if (fstat(opened.get(), &before) != 0) return absl::InternalError("cannot be examined");
    if (!S_ISREG(before.st_mode)) return absl::NotFoundError("not a regular file");
    file.stat = StatOf(before);
    if (IsUnchanged(loaded, file.stat)) return std::nullopt;
    file.stat.set_loaded_micros(NowMicros());
    PERCOLATOR_RETURN_IF_ERROR(IsPage(path) ? ReadPage(opened.get(), file) : ReadOther(opened.get(), path, file));
    if (fstat(opened.get(), &after) == 0 && IsSameFile(file.stat, StatOf(after))) break;
  }
  return file;
}

bool IsHiddenPath(std::string_view path) { return path.starts_with('.') || path.find("/.") != std::string_view::npos; }

// Everything is below "".
bool IsAtOrBelow(std::string_view url, std::string_view path) {
  return path.empty() || (url.starts_with(path) && (url.size() == path.size() || url[path.size()] == '/'));
}

// The columns of a file: its stat, and its loaded content.
const Column<FileStat>& StatColumn(std::string_view url) { return IsPage(url) ? kStat : kFileStat; }
const Column<std::string>& LoadedColumn(std::string_view url) { return IsPage(url) ? kContents : kEncoded<kState>; }

// The path of an entry of the list, which may be a url under the base. Absent if it is outside the folder.
std::optional<std::string> ListedPath(std::string_view base, const std::string& entry) {
  if (entry.find("://") != std::string_view::npos) return ResolveLink(base, "index.html", entry);
  const std::string framed = "/" + entry + "/";
  for (const char* trick : {"//", "/./", "/../"}) {
    if (framed.find(trick) != std::string_view::npos) return std::nullopt;
  }
  return UrlOfFile(entry);
}

}  // namespace

FileState FileStateOf(std::string_view path, std::string_view contents) {
  FileState state;
  state.set_bytes(contents.size());
  state.set_hash(HashOf(contents).low);
  state.set_excerpt(ExcerptOf(path, contents.substr(0, kMaxExcerptInput)));
  return state;
}

// --- Planning --------------------------------------------------------------------------------------------------------------

// Compares a part of the folder with the tables. Plans a load transaction for each file that differs or may differ; the
// transaction decides.
class Crawl::Plan {
 public:
  explicit Plan(Crawl* crawl) : crawl_(*crawl) {}

  // `path` is a file or a folder; "" means everything.
  absl::Status Make(const std::string& path) {
    // The order matters. A file that is no longer being loaded is in the tables. A file whose stat equals that in the tables
    // has not changed since it was loaded.
    const std::vector<std::string> loading = LoadingAt(path);
    PERCOLATOR_RETURN_IF_ERROR(ReadTables(path));
    for (const std::string& url : loading) known_.try_emplace(url);
    if (crawl_.options_.only_listed) {
      AddListed(path);
    } else {
      Visit(path);
    }
    for (const auto& [url, stat] : known_) tasks_.push_back({.url = url});  // not found
    return absl::OkStatus();
  }

  std::vector<Task>& tasks() { return tasks_; }
  uint64_t unchanged() const { return unchanged_; }
  uint64_t problems() const { return problems_; }

 private:
  // The urls at or below `path` that any thread is loading.
  std::vector<std::string> LoadingAt(const std::string& path) {
    const std::lock_guard<std::mutex> lock(crawl_.mutex_);
    std::vector<std::string> urls;
    for (const std::string& url : crawl_.loading_) {
      if (IsAtOrBelow(url, path)) urls.push_back(url);
    }
    return urls;
  }

  absl::Status ReadTables(const std::string& path) {
    PERCOLATOR_ASSIGN_OR_RETURN(const percolator::Snapshot now, crawl_.cluster_.GetSnapshot());
    std::vector<RowRange> ranges = {RowRange::Single(path), RowRange::Prefix(path + "/")};
    if (path.empty()) ranges = {RowRange::All()};
    for (const Column<FileStat>* column : {&kStat, &kFileStat}) {
      for (const RowRange& rows : ranges) {
        for (auto& stat : now.Scan(*column, {.rows = rows})) {
          PERCOLATOR_RETURN_IF_ERROR(stat.status());
          known_[stat->row] = std::move(stat->value);
        }
      }
    }
    return absl::OkStatus();
  }

  void AddListed(const std::string& path) {
    for (const std::string& url : crawl_.listed_) {
      if (IsAtOrBelow(url, path)) Visit(url);
    }
  }

  // Iterative, because folders may be nested deeply.
  void Visit(const std::string& path) {
    std::vector<std::string> paths{path};
    while (!paths.empty()) {
      const std::string next = std::move(paths.back());
      paths.pop_back();
      struct stat found {};
      if (lstat((crawl_.options_.folder + "/" + next).c_str(), &found) != 0)
        continue;  // it no longer exists: a load transaction decides
      if (S_ISDIR(found.st_mode) || next.empty()) {
        AddEntries(next, paths);
      } else if (S_ISREG(found.st_mode)) {
        AddFile(next, found);
      } else {
        Problem(next, "a link or a special file");
      }
    }
  }

  void AddEntries(const std::string& path, std::vector<std::string>& paths) {
    std::error_code error;
    auto entry = std::filesystem::directory_iterator(crawl_.options_.folder + "/" + path, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::string name = entry->path().filename().string();
      if (!name.starts_with('.')) paths.push_back(path.empty() ? std::move(name) : path + "/" + name);
    }
    if (error && error != std::errc::no_such_file_or_directory) Problem(path, "cannot be listed: " + error.message());
  }

  void AddFile(const std::string& path, const struct stat& found) {
    const std::optional<std::string> url = UrlOfFile(path);
    if (!url.has_value()) {
      Problem(ToValidUtf8(path), "the name is not valid: it is too long, not UTF-8, or has control characters");
      return;
    }
    const auto known = known_.find(*url);
    if (known != known_.end() && IsUnchanged(known->second, StatOf(found))) {
      ++unchanged_;
    } else {
      tasks_.push_back({.url = *url});
    }
    if (known != known_.end()) known_.erase(known);
  }

  void Problem(const std::string& path, const std::string& why) {
    ++problems_;
    crawl_.Report(path, why);
  }

  Crawl& crawl_;
  std::map<std::string, FileStat> known_;  // in the tables or being loaded, and not found in the folder yet
  std::vector<Task> tasks_;
  uint64_t unchanged_ = 0;
  uint64_t problems_ = 0;
};

// Registers the files that are being loaded, for its lifetime.
class Crawl::Loading {
 public:
  Loading(Crawl* crawl, const std::vector<Task>& tasks) : crawl_(*crawl) {
    const std::lock_guard<std::mutex> lock(crawl_.mutex_);
    for (const Task& task : tasks) places_.push_back(crawl_.loading_.insert(task.url));
  }
  ~Loading() {
    const std::lock_guard<std::mutex> lock(crawl_.mutex_);
    for (const auto& place : places_) crawl_.loading_.erase(place);
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

 private:
  Crawl& crawl_;
  std::vector<std::multiset<std::string, std::less<>>::iterator> places_;
};

// --- Loading ---------------------------------------------------------------------------------------------------------------

Crawl::Crawl(const percolator::Cluster& cluster, CrawlOptions options)
    : cluster_(cluster), options_(std::move(options)) {
  for (const std::string& entry : options_.list) {
    if (std::optional<std::string> path = ListedPath(options_.base, entry); path.has_value()) listed_.insert(*path);
  }
}

absl::StatusOr<CrawlResult> Crawl::Run() {
  PERCOLATOR_RETURN_IF_ERROR(CheckList());
  return Update("");
}

absl::Status Crawl::CheckList() const {
  if (!options_.only_listed) return absl::OkStatus();
  const auto exists = [this](const std::string& url) {
    struct stat found {};
    return lstat((options_.folder + "/" + url).c_str(), &found) == 0;
  };
  if (std::any_of(listed_.begin(), listed_.end(), exists)) return absl::OkStatus();
  return absl::NotFoundError("none of the " + std::to_string(options_.list.size()) + " entries of the list is in " +
                             options_.folder +
                             ", so indexing it would remove every page: name at least one file of this folder, " +
                             "or delete the data folder to start again");
}

absl::Status Crawl::Refresh(const std::string& relative_path) {
  std::string path = relative_path;
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && (IsHiddenPath(path) || !UrlOfFile(path).has_value())) return absl::OkStatus();
  return Update(path).status();
}

// If the folder does not exist, nothing is deleted: probably it is not mounted.
absl::StatusOr<CrawlResult> Crawl::Update(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(options_.folder, error)) {
    return absl::NotFoundError("there is no folder " + options_.folder);
  }
  Plan plan(this);
  PERCOLATOR_RETURN_IF_ERROR(plan.Make(path));
  {
    const Loading loading(this, plan.tasks());
    PERCOLATOR_RETURN_IF_ERROR(LoadAll(plan.tasks()));
  }
  CrawlResult result{.unchanged = plan.unchanged(), .problems = plan.problems()};
  for (const Task& task : plan.tasks()) {
    if (task.outcome == Outcome::kUnchanged) ++result.unchanged;
    if (task.outcome == Outcome::kLoaded) ++result.loaded;
    if (task.outcome == Outcome::kDeleted) ++result.deleted;
    if (task.problem.empty()) continue;
    ++result.problems;
    Report(task.url, task.problem);
  }
  return result;
}

// Loads a few files without a Loader, whose threads would cost more.
absl::Status Crawl::LoadAll(std::vector<Task>& tasks) {
  constexpr size_t kFew = 16;
  const percolator::TransactionOptions transaction{.prefetch_profile = "load"};
  if (tasks.size() <= kFew) {
    absl::Status first;
    for (Task& task : tasks) {
      first.Update(cluster_.Transact([&](ReadWrite& t) { return Load(t, task); }, transaction));
    }
    return first;
  }
  percolator::Loader loader(cluster_, {.threads = options_.threads,
                                       .max_backlog = options_.max_backlog,
                                       .max_backlog_age = options_.max_backlog_age,
                                       .transaction = transaction,
                                       .expected = tasks.size(),
                                       .on_progress = options_.on_progress});
  for (Task& task : tasks) loader.Add([this, &task](ReadWrite& t) { return Load(t, task); });
  return loader.Finish();
}

// Makes the tables equal to the file, which may not exist.
absl::Status Crawl::Load(ReadWrite& t, Task& task) {
  task = {.url = std::move(task.url)};  // resets the result of an earlier attempt
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<FileStat> stat, t.Get(StatColumn(task.url), task.url));
  if (!IsWanted(task.url)) return Write(t, task, stat, std::nullopt);
  const absl::StatusOr<std::optional<FileRead>> file =
      ReadIfChanged(options_.folder, task.url, stat.value_or(FileStat()));
  if (absl::IsNotFound(file.status())) return Write(t, task, stat, std::nullopt);
  if (!file.ok()) {
    task.problem = std::string(file.status().message());
    return absl::OkStatus();
  }
  if (file->has_value()) return Write(t, task, stat, *file);
  t.Verify(StatColumn(task.url), task.url);
  return absl::OkStatus();
}

// Does not write equal contents, so a file that was only touched triggers no observer.
absl::Status Crawl::Write(ReadWrite& t, Task& task, const std::optional<FileStat>& stat,
                          const std::optional<FileRead>& file) {
  const Column<std::string>& column = LoadedColumn(task.url);
  PERCOLATOR_ASSIGN_OR_RETURN(const std::optional<std::string> was, t.Get(column, task.url));
  std::optional<std::string> now;
  std::optional<FileStat> now_stat;
  if (file.has_value()) {
    now = IsPage(task.url) ? file->contents : Column<FileState>::Encode(file->state);
    now_stat = file->stat;
    if (IsPage(task.url) && file->stat.bytes() > kMaxContents) task.problem = "too large: only 8 MiB are stored";
  }
  if (now != was) {
    task.outcome = now.has_value() ? Outcome::kLoaded : Outcome::kDeleted;
    t.SetOrDelete(column, task.url, now);
  }
  t.SetOrVerify(StatColumn(task.url), task.url, stat, now_stat);
  return absl::OkStatus();
}

bool Crawl::IsWanted(std::string_view url) const {
  if (IsHiddenPath(url)) return false;
  return !options_.only_listed || listed_.contains(url);
}

void Crawl::Report(const std::string& path, const std::string& why) const {
  if (options_.on_problem) options_.on_problem(path, why);
}

}  // namespace webindex
