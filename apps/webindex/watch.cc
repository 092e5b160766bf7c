// SPDX-License-Identifier: Apache-2.0

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

// A change is reported when no more events come for a moment, but not later than this after the first.
constexpr milliseconds kMoment(5);
constexpr milliseconds kLatest(50);
// The period of full checks while events may be missing.
constexpr milliseconds kBlindPeriod(5000);
// The delay before a change that could not be followed is reported again.
constexpr milliseconds kAgainPeriod(1000);

std::string Joined(const std::string& folder, std::string_view name) {
  return folder.empty() ? std::string(name) : folder + "/" + std::string(name);
}

bool IsBelow(std::string_view path, std::string_view folder) {
  return folder.empty() || path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

// The paths of watched folders follow the events, so they may lag behind the disk, but are right when all events are read. A
// folder that appears under a new name is watched again, with all folders in it. A folder is reported after everything in it is
// watched: the receiver finds earlier changes when it reads the folder, and later changes are events.
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

  // Waits for an event, and reads all that are there. Returns false if none has come.
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
        return;  // the other events belong to the old watches
      }
      Take(event->wd, event->mask, event->len == 0 ? std::string_view() : std::string_view(event->name));
    }
  }

  void Take(int watch, uint32_t mask, std::string_view name) {
    const auto found = folders_.find(watch);
    if (found == folders_.end()) return;  // no longer watched
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

  // Creates a new set of watches. The events of the old one are lost.
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

  // Watches a folder and all folders in it. Watches each before reading its entries, so that new entries are events.
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
      inotify_rm_watch(events_.get(), folder->first);  // fails if the folder was deleted, which is harmless
      folder = folders_.erase(folder);
    }
  }

  void Tell() {
    told_.merge(failed_);
    failed_.clear();
    const std::set<std::string> told = std::exchange(told_, {});
    const std::string* above = nullptr;  // sorted paths below a path come after it, but not always directly
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

  // Used only by the thread once it runs:
  Descriptor events_{-1};
  std::map<int, std::string> folders_;  // paths, by watch
  std::set<std::string> told_;          // to be reported
  std::set<std::string> failed_;        // to be reported again
  bool blind_ = false;                  // some folders are not watched
  bool stopped_ = false;
};

Watch::Watch(std::string folder, std::function<bool(const std::string&)> changed)
    : impl_(std::make_unique<Impl>(std::move(folder), std::move(changed))) {}
Watch::~Watch() = default;
absl::Status Watch::Start() { return impl_->Start(); }
void Watch::Stop() { impl_->Stop(); }

}  // namespace webindex
