// SPDX-License-Identifier: Apache-2.0

#include "src/oracle/etcd/etcd_oracle.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/etcd/etcd_client.h"
#include "src/oracle/next_timestamps.h"

namespace percolator {
namespace {

constexpr uint64_t kNoLeader = 0;

// Enough for a few requests to etcd.
constexpr Duration kMinLease = std::chrono::milliseconds(100);
constexpr Duration kMinWindow = std::chrono::milliseconds(100);

// The record in etcd.
struct Record {
  uint64_t bound = 0;
  uint64_t lease_micros = 0;
  uint64_t incarnation = kNoLeader;
  std::string name;
};

std::string Hex(uint64_t number) {
  char text[17] = {};
  return {text, std::to_chars(text, text + sizeof text, number, 16).ptr};
}

std::string Encode(const Record& record) {
  return StrCat(record.bound, " ", record.lease_micros, " ", Hex(record.incarnation), " ", record.name);
}

bool ConsumeNumber(std::string_view* in, int base, uint64_t* number) {
  const auto [end, error] = std::from_chars(in->data(), in->data() + in->size(), *number, base);
  if (error != std::errc()) return false;
  in->remove_prefix(static_cast<size_t>(end - in->data()));
  return ConsumePrefix(in, " ");
}

std::optional<Record> Decode(std::string_view text) {
  Record record;
  if (!ConsumeNumber(&text, 10, &record.bound)) return std::nullopt;
  if (!ConsumeNumber(&text, 10, &record.lease_micros)) return std::nullopt;
  if (!ConsumeNumber(&text, 16, &record.incarnation)) return std::nullopt;
  record.name = text;
  return record;
}

class EtcdOracle final : public ElectedOracle {
 public:
  EtcdOracle(EtcdOracleOptions options, std::unique_ptr<EtcdClient> client);
  ~EtcdOracle() override;
  EtcdOracle(const EtcdOracle&) = delete;
  EtcdOracle& operator=(const EtcdOracle&) = delete;

  absl::StatusOr<Timestamp> GetTimestamps(uint32_t count) override;
  std::optional<absl::StatusOr<Timestamp>> TryGetTimestamps(uint32_t count) override { return GetTimestamps(count); }
  void Resign() override;

 private:
  uint64_t Now() const { return options_.clock->BootMicros(); }
  uint64_t LeaseMicros() const { return static_cast<uint64_t>(options_.lease.count()); }
  uint64_t WindowMicros() const { return static_cast<uint64_t>(options_.window.count()); }
  absl::Status CheckLeads() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns Unavailable with that text, followed by the last error of etcd if there is one.
  absl::Status Unavailable(std::string_view text) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the thread raise the bound above `end` soon.
  void RequestBound(uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the bound to write so that the oracle can continue from `next`.
  uint64_t BoundAbove(uint64_t next) const;

  // The following functions are called by the thread only.
  void Run();
  // Follow, TakeOver, Renew and Overtaken do one step and return how long to wait before the next.
  Duration Follow();
  // Returns true if no process can lead under this record, which was just read.
  bool IsFree(const Record& record) const;
  Duration TakeOver(const Record& found, int64_t revision);
  Duration Renew();
  Duration Overtaken(const std::optional<etcd::KeyValue>& found);
  void GiveUpLead();
  void CompactEtcd();
  absl::StatusOr<EtcdClient::TxnResult> Write(int64_t over, uint64_t bound, uint64_t incarnation);
  // Notes and returns the record that was just read, or nullopt if it is malformed.
  std::optional<Record> Note(const etcd::KeyValue& found);
  void NoteRevision(int64_t revision);
  void NoteLeader(const std::string& name, bool is_self);
  void NoteTrouble(const absl::Status& status);
  Duration WhileFollowing() const { return options_.lease / 8; }
  Duration WhileLeading() const { return std::min(options_.lease / 4, options_.window / 2); }
  Duration AfterAnError() const { return options_.lease / 20; }
  Duration RequestTimeout() const { return std::min(options_.etcd.timeout, options_.lease / 2); }

  const EtcdOracleOptions options_;
  const std::unique_ptr<EtcdClient> client_;
  const std::string key_;
  const uint64_t incarnation_;

  Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool leads_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t leads_until_ ABSL_GUARDED_BY(mutex_) = 0;  // a time of Now
  NextTimestamps timestamps_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;   // no timestamp below it is issued any more
  uint64_t bound_ ABSL_GUARDED_BY(mutex_) = 0;  // the bound in etcd
  bool wants_more_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t wanted_end_ ABSL_GUARDED_BY(mutex_) = 0;  // the end of a request that needs a higher bound
  std::string leader_ ABSL_GUARDED_BY(mutex_);       // the name of the leader
  absl::Status trouble_ ABSL_GUARDED_BY(mutex_);     // the last error in reading or writing the record

  // Used by the thread only.
  int64_t revision_ = -1;       // the last written or read revision of the record; 0: no record; -1: not read yet
  uint64_t seen_since_ = 0;     // the time after that revision was first read
  uint64_t highest_bound_ = 0;  // the highest bound ever seen
  uint64_t longest_lease_;      // the longest lease ever seen, in microseconds; at first that of this process

  // The revision to compact next, and when to do that.
  int64_t old_revision_ = 0;
  uint64_t compact_at_ = 0;

  std::thread thread_;  // last, because it uses the other members
};

EtcdOracle::EtcdOracle(EtcdOracleOptions options, std::unique_ptr<EtcdClient> client)
    : options_(std::move(options)),
      client_(std::move(client)),
      key_(StrCat(options_.etcd.prefix, "oracle")),
      incarnation_(Runtime::Real()->Random() | 1),
      changed_(Runtime::Real()->NewWaitQueue()),
      timestamps_(options_.clock),
      longest_lease_(LeaseMicros()),
      thread_([this] { Run(); }) {}

EtcdOracle::~EtcdOracle() { EtcdOracle::Resign(); }

void EtcdOracle::Resign() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_->WakeAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status EtcdOracle::CheckLeads() const {
  if (leads_) return absl::OkStatus();
  if (ending_) return absl::UnavailableError("this oracle has resigned");
  if (!trouble_.ok()) return Unavailable("not the leader");
  if (leader_.empty()) return absl::UnavailableError("no oracle leads yet");
  return absl::UnavailableError(StrCat("not the leader; the leader is ", leader_));
}

absl::Status EtcdOracle::Unavailable(std::string_view text) const {
  if (trouble_.ok()) return absl::UnavailableError(StrCat(text));
  return absl::UnavailableError(StrCat(text, ": ", ToPiece(trouble_.message())));
}

absl::StatusOr<Timestamp> EtcdOracle::GetTimestamps(uint32_t count) {
  MutexLock lock(&mutex_);
  PERCOLATOR_RETURN_IF_ERROR(CheckLeads());
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t first, timestamps_.First(next_, count));
  const uint64_t end = first + count;
  if (end > bound_) {  // O2
    RequestBound(end);
    return Unavailable("the leader has to raise its bound first");
  }
  // O4: the clock is read after the request has arrived.
  if (Now() >= leads_until_) return Unavailable("the lease of this leader has expired");
  next_ = end;
  if (bound_ - end < WindowMicros() / 2) RequestBound(end);
  return Timestamp(first);
}

void EtcdOracle::RequestBound(uint64_t end) {
  wanted_end_ = std::max(wanted_end_, end);
  if (!std::exchange(wants_more_, true)) changed_->WakeAll();
}

uint64_t EtcdOracle::BoundAbove(uint64_t next) const {
  return std::min(std::max(next, options_.clock->WallMicros()) + WindowMicros(), kLastTimestamp);
}

void EtcdOracle::Run() {
  for (;;) {
    bool leads = false;
    {
      MutexLock lock(&mutex_);
      if (ending_) break;
      leads = leads_;
    }
    const Duration pause = leads ? Renew() : Follow();
    MutexLock lock(&mutex_);
    if (pause > Duration::zero() && !ending_ && !wants_more_) changed_->WaitFor(&mutex_, pause);
  }
  GiveUpLead();
}

absl::StatusOr<EtcdClient::TxnResult> EtcdOracle::Write(int64_t over, uint64_t bound, uint64_t incarnation) {
  const Record record = {bound, LeaseMicros(), incarnation, options_.name};
  EtcdTxn txn;
  txn.IfModRevision(key_, over).ThenPut(key_, Encode(record)).OtherwiseGet(key_);
  return client_->Commit(txn, RequestTimeout());
}

Duration EtcdOracle::Follow() {
  const absl::StatusOr<std::optional<etcd::KeyValue>> found = client_->Get(key_, RequestTimeout());
  if (!found.ok()) {
    NoteTrouble(found.status());
    return WhileFollowing();
  }
  std::optional<Record> record;
  if (found->has_value()) {
    record = Note(**found);
  } else {
    NoteRevision(0);
    NoteLeader("", false);
    record = Record();
  }
  return record.has_value() && IsFree(*record) ? TakeOver(*record, revision_) : WhileFollowing();
}

// The first start of a cluster looks like the loss of its record, so it takes 5/4 of the lease.
bool EtcdOracle::IsFree(const Record& record) const {
  const bool is_due = revision_ != 0 && record.bound >= highest_bound_;  // neither lost nor put back
  const uint64_t lease = is_due ? record.lease_micros : longest_lease_;
  if (Now() - seen_since_ > lease + lease / 4) return true;
  return is_due && (record.incarnation == kNoLeader || record.incarnation == incarnation_);
}

void EtcdOracle::NoteRevision(int64_t revision) {
  if (revision == revision_) return;
  revision_ = revision;
  seen_since_ = Now();
}

std::optional<Record> EtcdOracle::Note(const etcd::KeyValue& found) {
  NoteRevision(found.mod_revision());
  std::optional<Record> record = Decode(found.value());
  if (!record.has_value()) {
    NoteTrouble(
        absl::DataLossError(StrCat("cannot parse the oracle's record in the etcd key ", key_, ": ", found.value())));
    return record;
  }
  highest_bound_ = std::max(highest_bound_, record->bound);
  longest_lease_ = std::max(longest_lease_, record->lease_micros);
  NoteLeader(record->incarnation == kNoLeader ? "" : record->name, record->incarnation == incarnation_);
  return record;
}

// O3. If the record was lost or replaced by an old one, the new leader starts above every bound that it has seen, and one
// window above the clock to pass a bound that it has not seen.
Duration EtcdOracle::TakeOver(const Record& found, int64_t revision) {
  const uint64_t begin = std::max({found.bound, highest_bound_, BoundAbove(0)});
  const uint64_t bound = BoundAbove(begin);
  const uint64_t sent = Now();
  const absl::StatusOr<EtcdClient::TxnResult> written = Write(revision, bound, incarnation_);
  if (!written.ok()) NoteTrouble(written.status());
  if (!written.ok() || !written->succeeded)
    return AfterAnError();  // another process wrote first, or this write succeeded without an answer
  revision_ = written->revision;
  {
    MutexLock lock(&mutex_);
    leads_ = true;
    leads_until_ = sent + LeaseMicros();
    next_ = std::max(next_, begin);
    bound_ = bound;
  }
  NoteLeader(options_.name, true);
  return WhileLeading();
}

Duration EtcdOracle::Renew() {
  uint64_t bound = 0;
  {
    MutexLock lock(&mutex_);
    bound = std::max(bound_, BoundAbove(std::max(next_, wanted_end_)));
    wants_more_ = false;
    wanted_end_ = 0;
  }
  const uint64_t sent = Now();
  const absl::StatusOr<EtcdClient::TxnResult> written = Write(revision_, bound, incarnation_);
  NoteTrouble(written.status());
  if (!written.ok()) return AfterAnError();
  if (!written->succeeded) return Overtaken(written->otherwise.front());
  revision_ = written->revision;
  {
    MutexLock lock(&mutex_);
    leads_until_ = sent + LeaseMicros();
    bound_ = bound;
  }
  CompactEtcd();
  return WhileLeading();
}

// Takes at most a part of the time until the next renewal. Ignores errors: the next compaction covers the same revisions.
void EtcdOracle::CompactEtcd() {
  if (options_.history == Duration::zero() || Now() < compact_at_) return;
  if (old_revision_ != 0) client_->Compact(old_revision_, RequestTimeout() / 4).IgnoreError();
  old_revision_ = revision_;
  compact_at_ = Now() + static_cast<uint64_t>(options_.history.count());
}

// Handles a record that changed unexpectedly: another process wrote it, or an own write that seemed to fail succeeded. Such a
// write does not extend the lease, because the time at which it was sent is unknown.
Duration EtcdOracle::Overtaken(const std::optional<etcd::KeyValue>& found) {
  const std::optional<Record> record = found.has_value() ? Decode(found->value()) : std::nullopt;
  const bool is_mine = record.has_value() && record->incarnation == incarnation_;
  {
    MutexLock lock(&mutex_);
    leads_ = is_mine;
    wants_more_ = false;
    if (is_mine) bound_ = std::max(bound_, record->bound);
    highest_bound_ = std::max(highest_bound_, bound_);
  }
  if (is_mine) {
    revision_ = found->mod_revision();
  } else if (found.has_value()) {
    Note(*found);
  }
  return Duration::zero();
}

void EtcdOracle::GiveUpLead() {
  uint64_t bound = 0;
  {
    MutexLock lock(&mutex_);
    if (!std::exchange(leads_, false)) return;
    bound = bound_;
  }
  Write(revision_, bound, kNoLeader).IgnoreError();  // after an error the followers wait for the lease to expire
}

void EtcdOracle::NoteLeader(const std::string& name, bool is_self) {
  {
    MutexLock lock(&mutex_);
    trouble_ = absl::OkStatus();
    if (leader_ == name) return;
    leader_ = name;
  }
  if (options_.on_leader != nullptr) options_.on_leader(name, is_self);
}

void EtcdOracle::NoteTrouble(const absl::Status& status) {
  MutexLock lock(&mutex_);
  trouble_ = status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ElectedOracle>> OpenEtcdOracle(const EtcdOracleOptions& options) {
  if (options.lease < kMinLease || options.window < kMinWindow) {
    return absl::InvalidArgumentError(StrCat("invalid oracle options: the lease is ", options.lease.count() / 1000,
                                             " ms and the window ", options.window.count() / 1000,
                                             " ms; the minimum of both is ", kMinLease.count() / 1000, " ms"));
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<EtcdClient> client,
                              EtcdClient::Open(options.etcd.endpoints, options.etcd.tls));
  return std::make_unique<EtcdOracle>(options, std::move(client));
}

}  // namespace percolator
