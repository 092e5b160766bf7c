// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/clean_record.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/store/rocks/rocks_status.h"

namespace percolator {
namespace {

constexpr std::string_view kCleanTitle = "percolator clean close 1";
constexpr std::string_view kNoCrc = "-";

uint32_t CrcOf(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
}

std::string HexCrc(uint32_t crc) { return absl::StrFormat("%08x", crc); }

bool IsTableFile(const std::string& name) { return absl::EndsWith(name, ".sst"); }

absl::Status SyncFolderThrough(rocksdb::Env* env, const std::string& dir) {
  std::unique_ptr<rocksdb::Directory> folder;
  rocksdb::Status status = env->NewDirectory(dir, &folder);
  if (status.ok()) status = folder->Fsync();
  return FromRocks(status, StrCat("syncing the folder ", dir));
}

// "NAME SIZE CRC"
std::optional<CleanRecord::File> DecodeFile(std::string_view line) {
  const std::vector<std::string> words = absl::StrSplit(std::string(line), ' ');
  CleanRecord::File file;
  if (words.size() != 3 || words[0].empty() || !absl::SimpleAtoi(words[1], &file.size)) return std::nullopt;
  file.name = words[0];
  uint32_t crc = 0;
  if (words[2] == kNoCrc) return file;
  if (!absl::SimpleHexAtoi(words[2], &crc)) return std::nullopt;
  file.crc = crc;
  return file;
}

// RocksDB does not need its OPTIONS file, and makes a new one at every open.
bool Matters(std::string_view name) { return !ConsumePrefix(&name, "OPTIONS-"); }

absl::StatusOr<CleanRecord::File> Describe(std::string name, const std::string& dir, rocksdb::Env* env) {
  const std::string path = StrCat(dir, "/", name);
  CleanRecord::File file{std::move(name), 0, std::nullopt};
  rocksdb::Status status = env->GetFileSize(path, &file.size);
  if (status.ok() && !IsTableFile(file.name)) {
    std::string bytes;
    status = rocksdb::ReadFileToString(env, path, &bytes);
    file.crc = CrcOf(bytes);
  }
  if (!status.ok()) return FromRocks(status, StrCat("reading ", path));
  return file;
}

// Returns how the file differs; empty if it does not.
absl::StatusOr<std::string> DifferenceOf(const CleanRecord::File& file, const std::string& path, rocksdb::Env* env) {
  rocksdb::Status status = env->FileExists(path);
  if (status.IsNotFound()) return StrCat("the file ", path, " is missing");
  uint64_t size = 0;
  if (status.ok()) status = env->GetFileSize(path, &size);
  if (!status.ok()) return FromRocks(status, StrCat("checking ", path));
  if (size != file.size) return StrCat("the file ", path, " has ", size, " bytes instead of ", file.size);
  if (!file.crc.has_value()) return std::string();
  std::string bytes;
  status = rocksdb::ReadFileToString(env, path, &bytes);
  if (!status.ok()) return FromRocks(status, StrCat("reading ", path));
  if (CrcOf(bytes) != *file.crc) return StrCat("the bytes of the file ", path, " have changed");
  return std::string();
}

// RocksDB would make a new database if it does not find CURRENT. It makes log and table files after CURRENT; and a
// cluster makes its oracle's file after the database.
absl::Status CheckNotLost(const StoreFolder& folder, rocksdb::Env* env) {
  const std::string current = StrCat(folder.rocksdb_dir(), "/CURRENT");
  if (env->FileExists(current).ok()) return absl::OkStatus();
  std::vector<std::string> names;
  if (rocksdb::Status s = env->GetChildren(folder.rocksdb_dir(), &names); !s.ok()) {
    return FromRocks(s, StrCat("listing ", folder.rocksdb_dir()));
  }
  const bool has_data = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return IsTableFile(name) || absl::EndsWith(name, ".log");
  });
  if (!has_data && !env->FileExists(StrCat(folder.dir(), "/oracle")).ok()) return absl::OkStatus();
  return absl::DataLossError(StrCat("the store in ", folder.dir(), " has lost its database: the file ", current,
                                    " is missing; restore the folder from a backup"));
}

}  // namespace

std::string CleanRecord::Encode() const {
  std::string text = StrCat(kCleanTitle, "\nsequence ", sequence, "\n");
  for (const File& file : files) {
    text += StrCat(file.name, " ", file.size, " ", file.crc ? HexCrc(*file.crc) : std::string(kNoCrc), "\n");
  }
  return StrCat(text, "crc ", HexCrc(CrcOf(text)), "\n");
}

std::optional<CleanRecord> CleanRecord::Decode(std::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(std::string(text), '\n');
  // Title, sequence, crc, and an empty line after the last newline.
  if (lines.size() < 4 || lines[0] != kCleanTitle) return std::nullopt;
  CleanRecord record;
  std::string_view sequence = lines[1];
  if (!ConsumePrefix(&sequence, "sequence ") || !absl::SimpleAtoi(std::string(sequence), &record.sequence)) {
    return std::nullopt;
  }
  for (size_t i = 2; i + 2 < lines.size(); ++i) {
    std::optional<File> file = DecodeFile(lines[i]);
    if (!file.has_value()) return std::nullopt;
    record.files.push_back(*std::move(file));
  }
  // Checks the checksum, and that no part of the text was skipped.
  if (record.Encode() != text) return std::nullopt;
  return record;
}

absl::Status WriteCleanRecord(const StoreFolder& folder, uint64_t sequence, const std::vector<std::string>& live,
                              rocksdb::Env* env) {
  CleanRecord record{sequence, {}};
  for (std::string_view name : live) {
    ConsumePrefix(&name, "/");
    if (!Matters(name)) continue;
    PERCOLATOR_ASSIGN_OR_RETURN(CleanRecord::File file, Describe(std::string(name), folder.rocksdb_dir(), env));
    record.files.push_back(std::move(file));
  }
  std::sort(record.files.begin(), record.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  // The names must be durable before the record that lists them.
  PERCOLATOR_RETURN_IF_ERROR(SyncFolderThrough(env, folder.rocksdb_dir()));
  const std::string path = folder.clean_record_path();
  const std::string temp = path + ".tmp";
  rocksdb::Status status = rocksdb::WriteStringToFile(env, record.Encode(), temp, /*should_sync=*/true);
  if (status.ok()) status = env->RenameFile(temp, path);
  if (!status.ok()) return FromRocks(status, StrCat("writing ", path));
  return SyncFolderThrough(env, folder.dir());
}

absl::StatusOr<uint64_t> TakeCleanRecord(const StoreFolder& folder, rocksdb::Env* env) {
  const std::string path = folder.clean_record_path();
  rocksdb::Status status = env->FileExists(path);
  if (status.IsNotFound()) {
    PERCOLATOR_RETURN_IF_ERROR(CheckNotLost(folder, env));
    return 0;
  }
  std::string text;
  if (status.ok()) status = rocksdb::ReadFileToString(env, path, &text);
  if (!status.ok()) return FromRocks(status, StrCat("reading ", path));
  const std::optional<CleanRecord> record = CleanRecord::Decode(text);
  if (!record.has_value()) {
    return absl::DataLossError(
        StrCat("the file ", path,
               " is damaged, and without it other damage cannot be found: restore the folder from a "
               "backup, or delete this file to open the store without the check"));
  }
  for (const CleanRecord::File& file : record->files) {
    PERCOLATOR_ASSIGN_OR_RETURN(const std::string difference,
                                DifferenceOf(file, StrCat(folder.rocksdb_dir(), "/", file.name), env));
    if (difference.empty()) continue;
    return absl::DataLossError(StrCat("since the store in ", folder.dir(), " was closed, ", difference,
                                      "; restore the folder from a backup. To open it as it is, possibly with "
                                      "data missing, delete ",
                                      path));
  }
  status = env->DeleteFile(path);
  if (!status.ok()) return FromRocks(status, StrCat("removing ", path));
  PERCOLATOR_RETURN_IF_ERROR(SyncFolderThrough(env, folder.dir()));
  return record->sequence;
}

}  // namespace percolator
