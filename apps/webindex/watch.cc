#include "apps/webindex/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "apps/webindex/originals.h"

namespace webindex {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr uint32_t kEvents = IN_CREATE | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE |
                             IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

// A change is told when nothing more has come for a moment, but not later than this after the first.
constexpr milliseconds kMoment(5);
constexpr milliseconds kLatest(50);
// While it can't be seen what changes.
constexpr milliseconds kBlindPeriod(5000);
// After what has changed could not be followed.
constexpr milliseconds kAgainPeriod(1000);

std::string Joined(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return folder.empty() || path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

// The names of watched folders follow the events, so they may be older than what is on disk, but when all events are read they
// are right: who finds a folder under a new name watches it, and all in it, again. A folder is told after everything in it is
// watched: what came before is found by whoever looks at it then, what comes later is an event.
class Watch::Impl {
 public:
  Impl(std::string folder, std::function<bool(const std::string&)> changed)
      : folder_(std::move(folder)), changed_(std::move(changed)) {}
  ~Impl() { Stop(); }

  absl::Status Start() {
    std::error_code error;
    if (!std::filesystem::is_directory(folder_, error)) return absl::NotFoundError("there is no folder " + folder_);
    stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (stop_.get() < 0) return absl::ResourceExhaustedError(std::strerror(errno));
    WatchEverything();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  void Stop() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

 private:
  void Run() {
    while (!stopped_) {
      Wait(!failed_.empty() ? kAgainPeriod : blind_ ? kBlindPeriod : milliseconds(-1));
      if (stopped_) return;
      if (blind_ && told_.empty()) WatchAgain();
      const Clock::time_point latest = Clock::now() + kLatest;
      while (!stopped_ && Wait(kMoment) && Clock::now() < latest) {
      }
      Tell();
    }
  }

  // Takes the events that are there, waiting for the first. False: none has come.
  bool Wait(milliseconds timeout) {
    std::array<pollfd, 2> fds{
        {{.fd = stop_.get(), .events = POLLIN, .revents = 0}, {.fd = events_.get(), .events = POLLIN, .revents = 0}}};
    if (poll(fds.data(), fds.size(), static_cast<int>(timeout.count())) <= 0) return false;
    stopped_ = fds[0].revents != 0;
    if (stopped_ || fds[1].revents == 0) return false;
    ReadEvents();
    return true;
  }

  void ReadEvents() {
    alignas(inotify_event) std::array<char, 64 << 10> buffer;
    const ssize_t got = read(events_.get(), buffer.data(), buffer.size());
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      if ((event->mask & IN_Q_OVERFLOW) != 0) {
        WatchAgain();
        return;  // the rest is of the watches before
      }
      Take(event->wd, event->mask, event->len == 0 ? std::string_view() : std::string_view(event->name));
    }
  }

  void Take(int watch, uint32_t mask, std::string_view name) {
    const auto found = folders_.find(watch);
    if (found == folders_.end()) return;  // not watched any more
    const std::string folder = found->second;
    if ((mask & IN_IGNORED) != 0) folders_.erase(found);
    if (name.empty()) {
      if (folder.empty() && (mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) LoseSight();
      return;
    }
    if (name.starts_with('.')) return;
    const std::string path = Joined(folder, name);
    if ((mask & IN_ISDIR) != 0 && (mask & (IN_MOVED_FROM | IN_DELETE)) != 0) Unwatch(path);
    if ((mask & IN_ISDIR) != 0 && (mask & (IN_CREATE | IN_MOVED_TO)) != 0) WatchFolder(path);
    told_.insert(path);
  }

  void LoseSight() {
    blind_ = true;
    told_.insert("");
  }

  // A new set of watches: what the old one had to say is not known.
  void WatchAgain() {
    WatchEverything();
    told_.insert("");
  }

  void WatchEverything() {
    folders_.clear();
    events_ = Descriptor(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    blind_ = events_.get() < 0;
    if (!blind_) WatchFolder("");
  }

  // And all folders in it. Each before its entries are read, so that those which are made meanwhile are events.
  void WatchFolder(const std::string& path) {
    std::vector<std::string> paths{path};
    while (!paths.empty() && !blind_) {
      const std::string next = std::move(paths.back());
      paths.pop_back();
      const std::string place = next.empty() ? folder_ : folder_ + "/" + next;
      const uint32_t no_links = next.empty() ? 0 : IN_DONT_FOLLOW;
      const int watch = inotify_add_watch(events_.get(), place.c_str(), kEvents | no_links);
      if (watch < 0) {
        const bool gone = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
        if (next.empty() || !(gone || errno == EACCES)) LoseSight();
        continue;
      }
      folders_[watch] = next;
      AddFolders(next, place, paths);
    }
  }

  static void AddFolders(const std::string& path, const std::string& place, std::vector<std::string>& paths) {
    std::error_code error;
    auto entry = std::filesystem::directory_iterator(place, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code of_entry;
      const std::string name = entry->path().filename().string();
      if (name.starts_with('.') || entry->symlink_status(of_entry).type() != std::filesystem::file_type::directory)
        continue;
      paths.push_back(Joined(path, name));
    }
  }

  void Unwatch(const std::string& path) {
    for (auto folder = folders_.begin(); folder != folders_.end();) {
      if (!IsBelow(folder->second, path)) {
        ++folder;
        continue;
      }
      inotify_rm_watch(events_.get(), folder->first);  // fails if it was deleted: then there is nothing to be done
      folder = folders_.erase(folder);
    }
  }

  void Tell() {
    told_.merge(failed_);
    failed_.clear();
    const std::set<std::string> told = std::exchange(told_, {});
    const std::string* above = nullptr;  // in their order the ones below a path come after it, though not all at once
    for (const std::string& path : told) {
      if (above != nullptr && IsBelow(path, *above)) continue;
      above = &path;
      if (!changed_(path)) failed_.insert(path);
    }
  }

  const std::string folder_;
  const std::function<bool(const std::string&)> changed_;
  Descriptor stop_{-1};
  std::thread thread_;

  // Below: of the thread, once it runs.
  Descriptor events_{-1};
  std::map<int, std::string> folders_;  // the path of each that is watched
  std::set<std::string> told_;          // to be told
  std::set<std::string> failed_;        // to be told again
  bool blind_ = false;                  // not everything is watched
  bool stopped_ = false;
};

Watch::Watch(std::string folder, std::function<bool(const std::string&)> changed)
    : impl_(std::make_unique<Impl>(std::move(folder), std::move(changed))) {}
Watch::~Watch() = default;
absl::Status Watch::Start() { return impl_->Start(); }
void Watch::Stop() { impl_->Stop(); }

}  // namespace webindex
