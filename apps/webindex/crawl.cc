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

#include "apps/webindex/cells.h"
#include "apps/webindex/originals.h"
#include "apps/webindex/parse.h"
#include "apps/webindex/tables.h"
#include "apps/webindex/terms.h"
#include "apps/webindex/url.h"

namespace webindex {

using percolator::ReadView;
using percolator::ReadWrite;
using percolator::RowRange;

struct FileRead {
  FileStat stat;         // from before it was read
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

// The clock of file systems moves in steps. A file that was changed just before it was loaded may have been changed again just
// after, without a difference to be seen.
constexpr int64_t kStepMicros = 100'000;

// Whether what was loaded is certainly what is there now.
bool IsUnchanged(const FileStat& loaded, const FileStat& now) {
  return IsSameFile(loaded, now) && now.changed_nanos() / 1000 + kStepMicros < loaded.loaded_micros();
}

bool HasExtension(std::string_view path, std::initializer_list<std::string_view> extensions) {
  const size_t dot = path.rfind('.');
  return dot != std::string_view::npos &&
         std::find(extensions.begin(), extensions.end(), path.substr(dot + 1)) != extensions.end();
}

// The first words of a file of text, from its beginning.
std::string ExcerptOf(std::string_view path, std::string_view beginning) {
  if (HasExtension(path, {"inc", "ssi"})) {  // a piece of a page
    return std::string(CutAtCharacter(ParsePage("", path, beginning).text.body(), kLongestExcerpt));
  }
  if (!HasExtension(path, {"txt", "text", "md", "rst"})) return "";
  std::string words;
  for (const char c : ToValidUtf8(beginning)) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space) words += c;
    if (space && !words.empty() && words.back() != ' ') words += ' ';
  }
  words.resize(CutAtCharacter(words, kLongestExcerpt).size());
  return words;
}

constexpr size_t kExcerptWithin = 4096;  // bytes of the file

// Reads all of a file, piece by piece.
absl::Status ReadPieces(int fd, const std::function<void(std::string_view)>& piece) {
  std::array<char, 64 << 10> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::InternalError(std::string("can't be read: ") + std::strerror(errno));
    if (got == 0) return absl::OkStatus();
    piece(std::string_view(buffer.data(), static_cast<size_t>(got)));
  }
}

absl::Status ReadPage(int fd, FileRead& file) {
  file.contents.clear();
  return ReadPieces(
      fd, [&](std::string_view piece) { file.contents += piece.substr(0, kMostContents - file.contents.size()); });
}

absl::Status ReadOther(int fd, std::string_view path, FileRead& file) {
  Hasher hasher;
  std::string beginning;
  uint64_t bytes = 0;
  absl::Status status = ReadPieces(fd, [&](std::string_view piece) {
    hasher.Add(piece);
    bytes += piece.size();
    beginning += piece.substr(0, kExcerptWithin - beginning.size());
  });
  file.state.set_bytes(bytes);
  file.state.set_hash(hasher.Finish().low);
  file.state.set_excerpt(ExcerptOf(path, beginning));
  return status;
}

constexpr int kMostReadings = 5;

// Reads the file unless it is as it was `loaded`: then absent. One that changes meanwhile is read again; if that does not
// end, its stat tells that it has changed. kNotFound: there is no such file, or it is not a regular one.
absl::StatusOr<std::optional<FileRead>> ReadIfChanged(const std::string& folder, const std::string& path,
                                                      const FileStat& loaded) {
  FileRead file;
  for (int reading = 0; reading < kMostReadings; ++reading) {
    const absl::StatusOr<Descriptor> opened = OpenBelow(folder, path);
    if (!opened.ok()) return opened.status();
    struct stat before {};
    struct stat after {};
    if (fstat(opened->get(), &before) != 0) return absl::InternalError("can't be examined");
    if (!S_ISREG(before.st_mode)) return absl::NotFoundError("not a regular file");
    file.stat = StatOf(before);
    if (IsUnchanged(loaded, file.stat)) return std::nullopt;
    file.stat.set_loaded_micros(NowMicros());
    absl::Status status = IsPage(path) ? ReadPage(opened->get(), file) : ReadOther(opened->get(), path, file);
    if (!status.ok()) return status;
    if (fstat(opened->get(), &after) == 0 && IsSameFile(file.stat, StatOf(after))) break;
  }
  return file;
}

bool IsHiddenPath(std::string_view path) { return path.starts_with('.') || path.find("/.") != std::string_view::npos; }

// "": everything is below it.
bool IsAtOrBelow(std::string_view url, std::string_view path) {
  return path.empty() || (url.starts_with(path) && (url.size() == path.size() || url[path.size()] == '/'));
}

// Where the files of a url are: the table, and the column of what is loaded.
std::pair<std::string_view, std::string_view> CellsOf(std::string_view url) {
  return IsPage(url) ? std::pair(kPages, kContents) : std::pair(kFiles, kState);
}

// The path of an entry of the list: itself, or what it is under the base. Absent: outside.
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
  state.set_excerpt(ExcerptOf(path, contents.substr(0, kExcerptWithin)));
  return state;
}

// --- What there is to do ---------------------------------------------------------------------------------------------------

// Compares a part of the folder with the tables. What is different, or may be, is for load transactions to look at; they
// decide.
class Crawl::Plan {
 public:
  explicit Plan(Crawl* crawl) : crawl_(*crawl) {}

  // `path`: a file or a folder; "": everything.
  absl::Status Make(const std::string& path) {
    // In this order: what is not being loaded any more is in the tables; and a file that has the stat which is known then
    // was not changed since it was loaded.
    const std::vector<std::string> loading = LoadingAt(path);
    if (absl::Status s = ReadTables(path); !s.ok()) return s;
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
  // The urls that are being loaded, by whomever: `path` and all below it.
  std::vector<std::string> LoadingAt(const std::string& path) {
    const std::lock_guard<std::mutex> lock(crawl_.mutex_);
    std::vector<std::string> urls;
    for (const std::string& url : crawl_.loading_) {
      if (IsAtOrBelow(url, path)) urls.push_back(url);
    }
    return urls;
  }

  absl::Status ReadTables(const std::string& path) {
    absl::StatusOr<percolator::Snapshot> now = crawl_.cluster_->Now();
    if (!now.ok()) return now.status();
    for (const std::string_view table : {kPages, kFiles}) {
      if (path.empty()) {
        if (absl::Status s = ReadStats(*now, table, RowRange::All()); !s.ok()) return s;
        continue;
      }
      for (const RowRange& rows : {RowRange::Single(path), RowRange::Prefix(path + "/")}) {
        if (absl::Status s = ReadStats(*now, table, rows); !s.ok()) return s;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadStats(ReadView& view, std::string_view table, const RowRange& range) {
    const auto rows = view.Scan({.table = std::string(table), .rows = range, .columns = {std::string(kStat)}});
    while (rows->Next()) {
      absl::StatusOr<FileStat> stat = MessageIn<FileStat>(rows->row().columns.at(0).value);
      if (!stat.ok()) return stat.status();
      known_[rows->row().key] = *std::move(stat);
    }
    return rows->status();
  }

  void AddListed(const std::string& path) {
    for (const std::string& url : crawl_.listed_) {
      if (IsAtOrBelow(url, path)) Visit(url);
    }
  }

  // Without recursion, however deep the folders are.
  void Visit(const std::string& path) {
    std::vector<std::string> paths{path};
    while (!paths.empty()) {
      const std::string next = std::move(paths.back());
      paths.pop_back();
      struct stat found {};
      if (lstat((crawl_.options_.folder + "/" + next).c_str(), &found) != 0)
        continue;  // gone: a load transaction will tell
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
    if (error && error != std::errc::no_such_file_or_directory) Problem(path, "can't be listed: " + error.message());
  }

  void AddFile(const std::string& path, const struct stat& found) {
    const std::optional<std::string> url = UrlOfFile(path);
    if (!url.has_value()) {
      Problem(ToValidUtf8(path), "a name that can't be");
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

// Makes it known that these are being loaded, while it lives.
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

Crawl::Crawl(percolator::Cluster* cluster, CrawlOptions options) : cluster_(cluster), options_(std::move(options)) {
  for (const std::string& entry : options_.list) {
    if (std::optional<std::string> path = ListedPath(options_.base, entry); path.has_value()) listed_.insert(*path);
  }
}

absl::StatusOr<CrawlResult> Crawl::Run() { return Update(""); }

absl::Status Crawl::Refresh(const std::string& relative_path) {
  std::string path = relative_path;
  while (path.ends_with('/')) path.pop_back();
  if (!path.empty() && (IsHiddenPath(path) || !UrlOfFile(path).has_value())) return absl::OkStatus();
  return Update(path).status();
}

// A folder that is gone as a whole is rather not mounted than empty, so nothing is deleted.
absl::StatusOr<CrawlResult> Crawl::Update(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(options_.folder, error)) {
    return absl::NotFoundError("there is no folder " + options_.folder);
  }
  Plan plan(this);
  if (absl::Status s = plan.Make(path); !s.ok()) return s;
  {
    const Loading loading(this, plan.tasks());
    if (absl::Status s = LoadAll(plan.tasks()); !s.ok()) return s;
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

// Few at once, as people edit files, are not worth a Loader and its threads.
absl::Status Crawl::LoadAll(std::vector<Task>& tasks) {
  constexpr size_t kFew = 16;
  if (tasks.size() <= kFew) {
    absl::Status first;
    for (Task& task : tasks) {
      first.Update(cluster_->Transact([&](ReadWrite& t) { return Load(t, task); }, {.kind = "load"}).status());
    }
    return first;
  }
  percolator::LoaderOptions loading{.threads = options_.threads,
                                    .max_backlog = options_.max_backlog,
                                    .max_age = options_.max_age,
                                    .transact = {.kind = "load"},
                                    .expected = tasks.size(),
                                    .on_progress = options_.on_progress};
  percolator::Loader loader(cluster_, loading);
  for (Task& task : tasks) loader.Add([this, &task](ReadWrite& t) { return Load(t, task); });
  return loader.Finish();
}

// Makes the tables as the file is, whether it is there or not.
absl::Status Crawl::Load(ReadWrite& t, Task& task) {
  task = {.url = std::move(task.url)};  // it may be run again
  const absl::StatusOr<Value> stat = t.Get(CellsOf(task.url).first, task.url, kStat);
  if (!stat.ok()) return stat.status();
  const absl::StatusOr<FileStat> loaded = MessageIn<FileStat>(*stat);
  if (!loaded.ok()) return loaded.status();
  if (!IsWanted(task.url)) return Write(t, task, *stat, std::nullopt);
  absl::StatusOr<std::optional<FileRead>> file = ReadIfChanged(options_.folder, task.url, *loaded);
  if (absl::IsNotFound(file.status())) return Write(t, task, *stat, std::nullopt);
  if (!file.ok()) {
    task.problem = std::string(file.status().message());
    return absl::OkStatus();
  }
  if (!file->has_value()) return t.Verify(CellsOf(task.url).first, task.url, kStat);
  return Write(t, task, *stat, **std::move(file));
}

// Contents that are the same are not written, so a file that was only touched is no work for anybody.
absl::Status Crawl::Write(ReadWrite& t, Task& task, const Value& stat, const std::optional<FileRead>& file) {
  const auto [table, column] = CellsOf(task.url);
  const absl::StatusOr<Value> was = t.Get(table, task.url, column);
  if (!was.ok()) return was.status();
  Value now;
  Value now_stat;
  if (file.has_value()) {
    now = IsPage(task.url) ? file->contents : file->state.SerializeAsString();
    now_stat = file->stat.SerializeAsString();
    if (IsPage(task.url) && file->stat.bytes() > kMostContents)
      task.problem = "too large: only the beginning is stored";
  }
  if (now != *was) {
    task.outcome = now.has_value() ? Outcome::kLoaded : Outcome::kDeleted;
    if (absl::Status s = Put(t, table, task.url, column, now); !s.ok()) return s;
  }
  return PutOrVerify(t, table, task.url, kStat, stat, now_stat);
}

bool Crawl::IsWanted(std::string_view url) const {
  if (IsHiddenPath(url)) return false;
  return !options_.only_listed || listed_.contains(url);
}

void Crawl::Report(const std::string& path, const std::string& why) const {
  if (options_.on_problem) options_.on_problem(path, why);
}

}  // namespace webindex
