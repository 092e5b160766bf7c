// SPDX-License-Identifier: Apache-2.0

#include "sim/store_server.h"

#include <algorithm>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/store/validate.h"

namespace percolator::sim {
namespace {

// The max number of parts in which a page of a scan is read.
constexpr int kScanParts = 4;

// Hands out the one timestamp that was drawn before.
class DrawnOracle final : public Oracle {
 public:
  explicit DrawnOracle(Timestamp drawn) : drawn_(drawn) {}
  absl::StatusOr<Timestamp> GetTimestamps(uint32_t /*count*/) override { return drawn_; }

 private:
  const Timestamp drawn_;
};

std::vector<Selector> Everything() {
  std::vector<Selector> selectors;
  for (int family = 0; family < kFamilyCount; ++family) selectors.push_back({.family = static_cast<Family>(family)});
  return selectors;
}

std::string OutcomeOf(const absl::StatusOr<JointResult>& result) {
  if (!result.ok()) return Brief(result.status());
  return result->applied ? StrCat("applied @", result->timestamp.ToString())
                         : StrCat("condition failed of row ", result->failed_row);
}

// Gives one timestamp to each mutation that was applied.
void GiveTimestamps(Timestamp first, std::vector<DrawnResult>* results) {
  for (size_t i = 0; i < results->size(); ++i) {
    const absl::StatusOr<MutateResult>& result = (*results)[i].result;
    if (result.ok() && *result == MutateResult::kApplied) (*results)[i].drawn = Timestamp(first.value() + i);
  }
}

}  // namespace

// A page of a scan that is being read, step by step.
struct StoreServer::ScanTask {
  Origin origin;
  ScanRequest request;  // rows.start moves on
  ScanPage page;
  uint64_t epoch;
  Responder<absl::StatusOr<ScanPage>> reply;
  int parts = 0;
};

// A commit in one step that is in progress.
struct StoreServer::Joint {
  Origin origin;
  std::shared_ptr<const JointMutation> mutation;
  std::optional<Timestamp> drawn;
  Responder<absl::StatusOr<JointResult>> reply;
};

StoreServer::StoreServer(Kernel* kernel, OracleServer* oracle)
    : Server(kernel, kStoreActor, "store", &Faults::Rates::store_restart),
      disk_(NewMemoryStore(kernel->faults.limits)),
      oracle_(oracle) {}

bool StoreServer::IsClosed(const std::string& table, const std::string& row) const {
  return !closed_.empty() && closed_.contains({table, row});
}

std::vector<Cell> StoreServer::RowForWatcher(const std::string& table, const std::string& row) {
  if (watcher_ == nullptr || !watcher_->WantsRows()) return {};
  static const std::vector<Selector>* const everything = new std::vector<Selector>(Everything());
  absl::StatusOr<std::vector<Row>> rows = disk_->Read({{table, row, *everything}});
  return rows.ok() ? std::move(rows->front().cells) : std::vector<Cell>();
}

void StoreServer::Log(const Origin& origin, std::string_view what, std::string_view outcome) {
  kernel_->trace.Line(kernel_->now(), origin.process->name(),
                      StrCat(origin.duplicate ? "(again) " : "", what, " -> ", outcome));
}

// ----- Reads

void StoreServer::Read(const Origin& origin, std::shared_ptr<const RowRead> read,
                       Responder<absl::StatusOr<Row>> reply) {
  if (IsClosed(read->table, read->row)) {
    TryAgainWhenOpen([this, origin, read = std::move(read), reply = std::move(reply)]() mutable {
      Read(origin, std::move(read), std::move(reply));
    });
    return;
  }
  absl::StatusOr<std::vector<Row>> rows = disk_->Read({*read});
  if (!rows.ok()) {
    reply(rows.status());
    return;
  }
  Row& row = rows->front();
  kernel_->trace.Mark(HashOf(row.cells));
  if (kernel_->trace.on()) Log(origin, Brief(*read), StrCat("{", Brief(row.cells), "}"));
  if (watcher_ != nullptr) watcher_->OnRead({kernel_->now(), origin, *read, row});
  reply(std::move(row));
}

void StoreServer::Scan(const Origin& origin, const ScanRequest& request, Responder<absl::StatusOr<ScanPage>> reply) {
  ContinueScan(std::make_shared<ScanTask>(ScanTask{origin, request, {}, epoch(), std::move(reply)}));
}

void StoreServer::ContinueScan(std::shared_ptr<ScanTask> scan) {
  if (scan->epoch != epoch()) return;  // the server has restarted
  if (!closed_.empty()) {
    TryAgainWhenOpen([this, scan = std::move(scan)]() mutable { ContinueScan(std::move(scan)); });
    return;
  }
  ScanRequest step = scan->request;
  step.row_limit -= std::min(step.row_limit, scan->page.rows.size());
  if (kernel_->faults.scan_step > 0) step.row_limit = std::min(step.row_limit, kernel_->faults.scan_step);
  absl::StatusOr<ScanPage> part = disk_->Scan(step);
  if (!part.ok()) {
    scan->reply(part.status());
    return;
  }
  Watch(scan->origin, step, *part);
  // If the disk ends a page before its row limit for a reason of its own, this page ends too.
  const bool short_part = part->rows.size() < step.row_limit;
  scan->page.resume = std::move(part->resume);
  std::move(part->rows.begin(), part->rows.end(), std::back_inserter(scan->page.rows));
  // Limits the time of a page: otherwise its reader would give up each time, and the scan would never end.
  const bool enough = ++scan->parts == kScanParts;
  if (short_part || enough || !scan->page.resume.has_value() || scan->page.rows.size() >= scan->request.row_limit) {
    scan->reply(std::move(scan->page));
    return;
  }
  scan->request.ContinueAt(*scan->page.resume);
  const Duration pause = kernel_->chance.Between(actor(), Site::kScanStep, Duration(0), kernel_->faults.latency_max);
  kernel_->scheduler.At(kernel_->now() + pause, actor(), "scan goes on",
                        [this, scan = std::move(scan)]() mutable { ContinueScan(std::move(scan)); });
}

void StoreServer::Watch(const Origin& origin, const ScanRequest& step, const ScanPage& part) {
  for (const Row& row : part.rows) kernel_->trace.Mark(HashOf(row.cells));
  if (kernel_->trace.on()) {
    std::string rows;
    for (const Row& row : part.rows) rows += StrCat(row.key, "{", Brief(row.cells), "} ");
    Log(origin, Brief(step), StrCat(rows, part.resume.has_value() ? StrCat("then ", *part.resume) : "end"));
  }
  if (watcher_ != nullptr) watcher_->OnScan({kernel_->now(), origin, step, part.resume, part.rows});
}

// ----- Mutations of one row

void StoreServer::Mutate(const Origin& origin, std::shared_ptr<const RowMutations> mutations,
                         Responder<MutateResults> reply) {
  if (IsClosed(mutations->front().table, mutations->front().row)) {
    TryAgainWhenOpen([this, origin, mutations = std::move(mutations), reply = std::move(reply)]() mutable {
      Mutate(origin, std::move(mutations), std::move(reply));
    });
    return;
  }
  reply(ApplyAll(origin, *mutations));
}

void StoreServer::MutateThenDraw(const Origin& origin, std::shared_ptr<const RowMutations> mutations,
                                 Responder<MutateResults> reply) {
  const auto count = static_cast<uint32_t>(mutations->size());
  const Duration pause = kernel_->chance.Between(actor(), Site::kDrawLength, Duration(0), kernel_->faults.latency_max);
  if (IsClosed(mutations->front().table, mutations->front().row)) {
    TryAgainWhenOpen([this, origin, mutations, epoch = epoch(), reply = std::move(reply)]() mutable {
      if (epoch == this->epoch()) MutateThenDraw(origin, std::move(mutations), std::move(reply));
    });
    return;
  }
  kernel_->scheduler.At(kernel_->now() + pause, actor(), "draws",
                        [this, count, results = ApplyAll(origin, *mutations), reply = std::move(reply)]() mutable {
                          const absl::StatusOr<Timestamp> first = oracle_->Serve(count);
                          if (first.ok()) GiveTimestamps(*first, &results);
                          reply(std::move(results));
                        });
}

StoreServer::MutateResults StoreServer::ApplyAll(const Origin& origin, const RowMutations& mutations) {
  MutateResults results;
  results.reserve(mutations.size());
  for (const RowMutation& mutation : mutations) results.push_back({Apply(origin, mutation), std::nullopt});
  return results;
}

absl::StatusOr<MutateResult> StoreServer::Apply(const Origin& origin, const RowMutation& mutation) {
  const std::vector<Cell> before = RowForWatcher(mutation.table, mutation.row);
  absl::StatusOr<MutateResult> result = disk_->Mutate({mutation}).front();
  const bool applied = result.ok() && *result == MutateResult::kApplied;
  kernel_->trace.Mark(Mix(HashOf(mutation), applied ? 1 : 0));
  if (kernel_->trace.on()) Log(origin, Brief(mutation), Brief(result));
  if (applied && watcher_ != nullptr) {
    watcher_->OnMutation({kernel_->now(), origin, mutation, before, RowForWatcher(mutation.table, mutation.row)});
  }
  return result;
}

absl::Status StoreServer::RaiseSafePoint(Timestamp ts) {
  PERCOLATOR_RETURN_IF_ERROR(disk_->RaiseSafePoint(ts));
  const absl::StatusOr<Timestamp> safe_point = disk_->SafePoint();  // a smaller one is ignored
  if (!safe_point.ok()) return safe_point.status();
  kernel_->trace.Mark(safe_point->value());
  if (kernel_->trace.on()) {
    kernel_->trace.Line(kernel_->now(), "store", StrCat("safe point -> ", safe_point->ToString()));
  }
  if (watcher_ != nullptr) watcher_->OnSafePoint(kernel_->now(), *safe_point);
  return absl::OkStatus();
}

// ----- Commits in one step

void StoreServer::MutateTogether(const Origin& origin, std::shared_ptr<const JointMutation> mutation,
                                 Responder<absl::StatusOr<JointResult>> reply) {
  BeginJoint(std::make_shared<Joint>(Joint{origin, std::move(mutation), std::nullopt, std::move(reply)}));
}

bool StoreServer::AnyClosed(const JointMutation& mutation) const {
  return std::any_of(mutation.rows.begin(), mutation.rows.end(),
                     [this](const RowMutation& row) { return IsClosed(row.table, row.row); });
}

void StoreServer::BeginJoint(std::shared_ptr<Joint> joint) {
  if (AnyClosed(*joint->mutation)) {
    TryAgainWhenOpen([this, joint = std::move(joint)]() mutable { BeginJoint(std::move(joint)); });
    return;
  }
  const uint64_t number = next_joint_++;
  for (const RowMutation& row : joint->mutation->rows) closed_.emplace(row.table, row.row);
  absl::StatusOr<JointResult> check = CheckJoint(*joint->mutation);
  const bool holds = check.ok() && check->applied;
  joints_.emplace(number, std::move(joint));
  if (holds) {
    AfterAWhile(number, &StoreServer::DrawForJoint);
  } else {
    FinishJoint(number, std::move(check));
  }
}

// kApplied here means that it could be applied.
absl::StatusOr<JointResult> StoreServer::CheckJoint(const JointMutation& mutation) {
  PERCOLATOR_RETURN_IF_ERROR(ValidateJointMutation(mutation, kernel_->faults.limits));
  PERCOLATOR_ASSIGN_OR_RETURN(const Timestamp safe_point, disk_->SafePoint());
  PERCOLATOR_RETURN_IF_ERROR(CheckSafePoint(mutation, safe_point));
  for (size_t i = 0; i < mutation.rows.size(); ++i) {
    const RowMutation& row = mutation.rows[i];
    // A mutation without effects reports whether its condition holds.
    PERCOLATOR_ASSIGN_OR_RETURN(const MutateResult holds,
                                disk_->Mutate({{row.table, row.row, row.condition, {}}}).front());
    if (holds == MutateResult::kConditionFailed) return JointResult{.failed_row = i};
  }
  return JointResult{.applied = true};
}

Duration StoreServer::StepLength() {
  return kernel_->chance.Between(actor(), Site::kOneStepLength, Duration(0), kernel_->faults.one_step_max);
}

void StoreServer::AfterAWhile(uint64_t number, void (StoreServer::*step)(uint64_t)) {
  kernel_->scheduler.At(kernel_->now() + StepLength(), actor(), "one step", [this, number, step] {
    if (joints_.contains(number)) (this->*step)(number);  // otherwise a restart has ended it
  });
}

void StoreServer::DrawForJoint(uint64_t number) {
  const absl::StatusOr<Timestamp> drawn = oracle_->Serve(1);
  if (!drawn.ok()) {
    FinishJoint(number, NoTimestampDrawn(drawn.status()));
    return;
  }
  joints_.at(number)->drawn = *drawn;
  AfterAWhile(number, &StoreServer::ApplyJoint);
}

void StoreServer::ApplyJoint(uint64_t number) { FinishJoint(number, ApplyRows(*joints_.at(number))); }

// Its conditions still hold, because the rows are closed. If the safe point has passed it meanwhile, it is refused
// (G4).
absl::StatusOr<JointResult> StoreServer::ApplyRows(const Joint& joint) {
  std::vector<std::vector<Cell>> before;
  for (const RowMutation& row : joint.mutation->rows) before.push_back(RowForWatcher(row.table, row.row));
  DrawnOracle drawn(*joint.drawn);
  absl::StatusOr<JointResult> result = disk_->MutateTogether(*joint.mutation, &drawn);
  if (!result.ok() || !result->applied || watcher_ == nullptr) return result;
  for (size_t i = 0; i < before.size(); ++i) {
    RowMutation row = joint.mutation->rows[i];
    for (Mutation& m : row.mutations) SetDrawnTimestamp(*joint.drawn, &m);
    watcher_->OnMutation({kernel_->now(), joint.origin, row, before[i], RowForWatcher(row.table, row.row)});
  }
  return result;
}

void StoreServer::LogJoint(const Joint& joint, const absl::StatusOr<JointResult>& result) {
  const bool applied = result.ok() && result->applied;
  for (const RowMutation& row : joint.mutation->rows) kernel_->trace.Mark(Mix(HashOf(row), applied ? 1 : 0));
  if (!kernel_->trace.on()) return;
  std::string rows = StrCat("one step from ", joint.mutation->start_ts.ToString(), ":");
  for (const RowMutation& row : joint.mutation->rows) rows += StrCat(" ", Brief(row), ";");
  Log(joint.origin, rows, OutcomeOf(result));
}

void StoreServer::FinishJoint(uint64_t number, absl::StatusOr<JointResult> result) {
  const std::shared_ptr<Joint> joint = joints_.at(number);
  LogJoint(*joint, result);
  joints_.erase(number);
  for (const RowMutation& row : joint->mutation->rows) closed_.erase({row.table, row.row});
  joint->reply(std::move(result));
  for (Scheduler::Action& action : std::exchange(waiting_, {})) action();
}

void StoreServer::OnRestart() {
  for (auto& [number, joint] : joints_) {
    if (joint->drawn.has_value() && kernel_->chance.Happens(actor(), Site::kApplyInRestart, 0.5)) {
      LogJoint(*joint, ApplyRows(*joint));
    }
  }
  // Callers that wait get no answer.
  joints_.clear();
  closed_.clear();
  waiting_.clear();
}

}  // namespace percolator::sim
