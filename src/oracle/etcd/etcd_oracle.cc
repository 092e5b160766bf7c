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

constexpr uint64_t kNobody = 0;

// Enough for a few requests to etcd.
constexpr Duration kLeastLease = std::chrono::milliseconds(100);
constexpr Duration kLeastWindow = std::chrono::milliseconds(100);

// The record in etcd.
struct Record {
  uint64_t bound = 0;
  uint64_t lease_micros = 0;
  uint64_t incarnation = kNobody;
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
  // kUnavailable with that text, and what is the matter with etcd, if something is.
  absl::Status Hindered(std::string_view text) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The bound is raised soon.
  void AskForMore(uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What to write as the bound, to be able to go on from `next`.
  uint64_t BoundAbove(uint64_t next) const;

  // All that follows is the thread's.
  void Run();
  // Each does one step and returns how long to wait before the next.
  Duration Follow();
  // Whether nobody can lead by this record, which is as it was just read.
  bool IsFree(const Record& record) const;
  Duration TakeOver(const Record& found, int64_t revision);
  Duration Renew();
  Duration Overtaken(const std::optional<etcd::KeyValue>& found);
  void GiveUpLead();
  void CompactEtcd();
  absl::StatusOr<EtcdClient::TxnResult> Write(int64_t over, uint64_t bound, uint64_t incarnation);
  // The record as it was just read. Absent: it can't be read.
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
  uint64_t leads_until_ ABSL_GUARDED_BY(mutex_) = 0;  // by the clock of Now
  NextTimestamps timestamps_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 0;   // everything below has been handed out, or never will be
  uint64_t bound_ ABSL_GUARDED_BY(mutex_) = 0;  // in etcd
  bool wants_more_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t wanted_end_ ABSL_GUARDED_BY(mutex_) = 0;  // of a request that the bound was too low for
  std::string leader_ ABSL_GUARDED_BY(mutex_);       // its name
  absl::Status trouble_ ABSL_GUARDED_BY(mutex_);     // why the record can't be read, or not be written

  // Of the thread alone.
  int64_t revision_ = -1;       // of the record: as I wrote it, or last saw it; 0: there is none; -1: not seen yet
  uint64_t seen_since_ = 0;     // when I had read that
  uint64_t highest_bound_ = 0;  // ever seen
  uint64_t longest_lease_;      // ever seen, in microseconds; at first my own

  // Until when etcd is told to forget the next time, and when that is due.
  int64_t old_revision_ = 0;
  uint64_t forget_at_ = 0;

  std::thread thread_;  // last: it uses the rest
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
  if (!trouble_.ok()) return Hindered("this oracle does not lead");
  if (leader_.empty()) return absl::UnavailableError("no oracle leads yet");
  return absl::UnavailableError(StrCat("this oracle does not lead, but ", leader_, " does"));
}

absl::Status EtcdOracle::Hindered(std::string_view text) const {
  if (trouble_.ok()) return absl::UnavailableError(StrCat(text));
  return absl::UnavailableError(StrCat(text, ": ", ToPiece(trouble_.message())));
}

absl::StatusOr<Timestamp> EtcdOracle::GetTimestamps(uint32_t count) {
  MutexLock lock(&mutex_);
  PERCOLATOR_RETURN_IF_ERROR(CheckLeads());
  PERCOLATOR_ASSIGN_OR_RETURN(const uint64_t first, timestamps_.First(next_, count));
  const uint64_t end = first + count;
  if (end > bound_) {  // O2
    AskForMore(end);
    return Hindered("this oracle leads, but has to raise its bound first");
  }
  // O4: asked after the request has arrived.
  if (Now() >= leads_until_) return Hindered("this oracle led, and can't be certain that it still does");
  next_ = end;
  if (bound_ - end < WindowMicros() / 2) AskForMore(end);
  return Timestamp(first);
}

void EtcdOracle::AskForMore(uint64_t end) {
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

// The first start of a cluster looks like the loss of its record: it takes one and a quarter of a lease, once.
bool EtcdOracle::IsFree(const Record& record) const {
  const bool is_due = revision_ != 0 && record.bound >= highest_bound_;  // neither lost nor put back
  const uint64_t lease = is_due ? record.lease_micros : longest_lease_;
  if (Now() - seen_since_ > lease + lease / 4) return true;
  return is_due && (record.incarnation == kNobody || record.incarnation == incarnation_);
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
    NoteTrouble(absl::DataLossError(StrCat("the record in etcd's key ", key_, " can't be read: ", found.value())));
    return record;
  }
  highest_bound_ = std::max(highest_bound_, record->bound);
  longest_lease_ = std::max(longest_lease_, record->lease_micros);
  NoteLeader(record->incarnation == kNobody ? "" : record->name, record->incarnation == incarnation_);
  return record;
}

// O3. If the record was lost or put back, a bound that was seen before still holds, and one that nobody here has seen was so
// much above the clock.
Duration EtcdOracle::TakeOver(const Record& found, int64_t revision) {
  const uint64_t begin = std::max({found.bound, highest_bound_, BoundAbove(0)});
  const uint64_t bound = BoundAbove(begin);
  const uint64_t sent = Now();
  const absl::StatusOr<EtcdClient::TxnResult> written = Write(revision, bound, incarnation_);
  if (!written.ok()) NoteTrouble(written.status());
  if (!written.ok() || !written->succeeded)
    return AfterAnError();  // another was quicker, or it was written nevertheless
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

// It takes a part of the time until the next renewal at most. If it fails, it is done the next time.
void EtcdOracle::CompactEtcd() {
  if (options_.history == Duration::zero() || Now() < forget_at_) return;
  if (old_revision_ != 0) client_->Compact(old_revision_, RequestTimeout() / 4).IgnoreError();
  old_revision_ = revision_;
  forget_at_ = Now() + static_cast<uint64_t>(options_.history.count());
}

// Either by another, or by a write of one's own that seemed to have failed. The latter does not make the lease longer: who
// knows when it was sent.
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
  Write(revision_, bound, kNobody).IgnoreError();  // else the others notice after a while
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
  if (options.lease < kLeastLease || options.window < kLeastWindow) {
    return absl::InvalidArgumentError("an oracle's lease and its window are at least 100 ms");
  }
  PERCOLATOR_ASSIGN_OR_RETURN(std::unique_ptr<EtcdClient> client,
                              EtcdClient::Open(options.etcd.endpoints, options.etcd.tls));
  return std::make_unique<EtcdOracle>(options, std::move(client));
}

}  // namespace percolator
