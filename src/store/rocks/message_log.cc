// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/message_log.h"

#include <fcntl.h>

#include <cstdarg>
#include <cstdio>

#include "percolator/spi/mutex.h"

namespace percolator {
namespace {

// Returns null if it cannot be opened.
std::FILE* OpenForOwner(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  return fd < 0 ? nullptr : fdopen(fd, "w");
}

class MessageLog : public rocksdb::Logger {
 public:
  explicit MessageLog(const std::string& path) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), file_(OpenForOwner(path)) {}
  ~MessageLog() override {
    if (file_ != nullptr) std::fclose(file_);
  }

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    MutexLock lock(&mutex_);
    if (file_ == nullptr) return;
    std::vfprintf(file_, format, arguments);
    std::fputc('\n', file_);
    std::fflush(file_);
  }

 private:
  Mutex mutex_;
  std::FILE* const file_;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> NewMessageLog(const std::string& path) { return std::make_shared<MessageLog>(path); }

}  // namespace percolator
