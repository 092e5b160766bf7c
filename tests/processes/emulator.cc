// SPDX-License-Identifier: Apache-2.0

#include "tests/processes/emulator.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "src/base/strings.h"

namespace percolator {
namespace {

namespace fs = std::filesystem;

constexpr char kGoPackages[] = "/usr/share/gocode";
constexpr char kPackaged[] = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator";

// PERCOLATOR_GO_FOLDER: the folder of built programs (CMakeLists.txt).
std::string Folder() { return PERCOLATOR_GO_FOLDER; }
std::string MainFile() { return PERCOLATOR_SOURCE_FOLDER "/tests/processes/emulator/main.go"; }

// A lock across processes, held while this lives.
class FileLock {
 public:
  explicit FileLock(const std::string& file) : fd_(open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (fd_ >= 0) (void)flock(fd_, LOCK_EX);
  }
  ~FileLock() { close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int fd_;
};

// Debian's program, for which its packages of Go are made: another one may be first in PATH.
std::string GoCommand() { return fs::exists("/usr/bin/go") ? "/usr/bin/go" : "go"; }

absl::Status BuildInto(const std::string& file, const std::vector<std::string>& command) {
  std::vector<std::string> argv = {GoCommand(), command.front(), "-o", file};
  argv.insert(argv.end(), command.begin() + 1, command.end());
  ChildProcess go(argv, {"GO111MODULE=off", StrCat("GOPATH=", kGoPackages), StrCat("GOCACHE=", Folder(), "/cache")},
                  /*merge=*/true);
  const std::string said = go.ReadAll();
  const int code = go.Wait();
  if (code == 127) return absl::UnavailableError("no program go: install golang-go");
  if (code != 0) return absl::InternalError(StrCat("go ", command.front(), " failed: ", said));
  return absl::OkStatus();
}

// The address at the end of a line such as "... running on 127.0.0.1:8086".
std::string LastWord(const std::string& line) {
  const size_t space = line.find_last_of(' ');
  return space == std::string::npos ? line : line.substr(space + 1);
}

}  // namespace

absl::StatusOr<std::string> BuildGoProgram(std::string_view name, const std::vector<std::string>& command) {
  if (!fs::exists(StrCat(kGoPackages, "/src/cloud.google.com/go/bigtable/bttest"))) {
    return absl::UnavailableError("no Bigtable for Go: install golang-google-cloud-dev");
  }
  fs::create_directories(Folder());
  const std::string file = StrCat(Folder(), "/", name);
  const FileLock lock(file + ".lock");
  if (fs::exists(file) && fs::last_write_time(file) > fs::last_write_time(MainFile())) return file;
  const std::string unfinished = file + ".new";
  if (absl::Status s = BuildInto(unfinished, command); !s.ok()) return s;
  fs::rename(unfinished, file);
  fs::last_write_time(file, fs::file_time_type::clock::now());
  return file;
}

absl::StatusOr<std::unique_ptr<Emulator>> Emulator::Start() {
  const absl::StatusOr<std::string> program = BuildGoProgram("bigtable-emulator", {"build", MainFile()});
  if (!program.ok()) return program.status();
  std::unique_ptr<Emulator> emulator(new Emulator({*program}));
  if (!emulator->child_.ReadLine(&emulator->target_)) return absl::InternalError("the emulator does not start");
  return emulator;
}

absl::StatusOr<std::unique_ptr<Emulator>> Emulator::StartPackaged() {
  if (!fs::exists(kPackaged)) return absl::UnavailableError("Google's packaged emulator is not installed");
  std::unique_ptr<Emulator> emulator(new Emulator({kPackaged, "-host", "127.0.0.1", "-port", "0"}));
  std::string line;
  if (!emulator->child_.ReadLine(&line)) return absl::InternalError("the packaged emulator does not start");
  emulator->target_ = LastWord(line);
  return emulator;
}

}  // namespace percolator
