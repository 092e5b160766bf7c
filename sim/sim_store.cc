// SPDX-License-Identifier: Apache-2.0

#include "sim/sim_store.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "percolator/status_macros.h"
#include "src/base/strings.h"
#include "src/store/validate.h"

namespace percolator::sim {
namespace {

absl::Status NoAnswer(CallKind kind) { return absl::UnavailableError(StrCat("no answer to ", CallName(kind))); }

// How the parts of a batch travel: together or each on its own, in any case some time apart.
class BatchPassages {
 public:
  BatchPassages(Kernel* kernel, const Process& from, Duplicates duplicates)
      : kernel_(kernel), from_(from), duplicates_(duplicates), shared_(DrawPassage(kernel, from, duplicates)) {}

  // The passage of the next part, which has these steps.
  Passage Next(Steps steps) {
    Passage passage = first_ || !kernel_->faults.rows_travel_alone ? shared_ : DrawPassage(kernel_, from_, duplicates_);
    passage.steps = steps;
    if (std::exchange(first_, false)) return passage;
    passage.there += Apart();
    if (passage.again.has_value()) *passage.again += Apart();
    return passage;
  }

 private:
  Duration Apart() {
    return kernel_->chance.Between(from_.id(), Site::kSpread, Duration(0), kernel_->faults.spread_max);
  }

  Kernel* const kernel_;
  const Process& from_;
  const Duplicates duplicates_;
  const Passage shared_;
  bool first_ = true;
};

// The entries of a batch by row, in their order.
struct RowGroup {
  std::shared_ptr<StoreServer::RowMutations> mutations = std::make_shared<StoreServer::RowMutations>();
  std::vector<size_t> entries;
  Steps steps = 0;
};

std::vector<RowGroup> ByRow(const std::vector<RowMutation>& mutations) {
  std::vector<RowGroup> groups;
  std::map<std::pair<std::string_view, std::string_view>, size_t> group_of;
  for (size_t i = 0; i < mutations.size(); ++i) {
    const auto [it, added] = group_of.try_emplace({mutations[i].table, mutations[i].row}, groups.size());
    if (added) groups.emplace_back();
    groups[it->second].mutations->push_back(mutations[i]);
    groups[it->second].entries.push_back(i);
  }
  return groups;
}

}  // namespace

absl::Status SimStore::Begin(CallKind kind, Steps steps) {
  if (closed_) return StoreClosed("simulated store");
  return process_->EnterCall(kind, steps) ? absl::OkStatus() : NoAnswer(kind);
}

absl::StatusOr<std::vector<Row>> SimStore::Read(const std::vector<RowRead>& reads) {
  using Answer = absl::StatusOr<Row>;
  // Copied before anything waits, so that later changes of the caller's batch do not matter.
  std::vector<std::shared_ptr<const RowRead>> copies;
  for (const RowRead& read : reads) copies.push_back(std::make_shared<RowRead>(read));
  const Steps steps = copies.empty() ? 0 : kernel_->steps.Of(*copies.front());  // of the whole batch
  PERCOLATOR_RETURN_IF_ERROR(Begin(CallKind::kRead, steps));
  Call<Answer> call(kernel_, process_, CallKind::kRead, copies.size());
  call.About(steps);
  BatchPassages passages(kernel_, *process_, Duplicates::kNever);
  for (size_t i = 0; i < copies.size(); ++i) {
    call.Send(i, passages.Next(steps), server_,
              [server = server_, process = process_, read = copies[i]](Responder<Answer> reply) {
                const Origin origin{process, reply.of_duplicate()};
                server->Read(origin, read, std::move(reply));
              });
  }
  std::vector<Row> rows;
  for (std::optional<Answer>& answer : call.Wait()) {
    if (!answer.has_value()) return NoAnswer(CallKind::kRead);
    if (!answer->ok()) return answer->status();
    rows.push_back(**std::move(answer));
  }
  for (size_t i = 0; i < rows.size(); ++i) server_->Heard(*process_, copies[i]->selectors, rows[i]);
  return rows;
}

absl::StatusOr<ScanPage> SimStore::Scan(const ScanRequest& request) {
  using Answer = absl::StatusOr<ScanPage>;
  const Steps steps = kernel_->steps.Of(request);
  PERCOLATOR_RETURN_IF_ERROR(Begin(CallKind::kScan, steps));
  Call<Answer> call(kernel_, process_, CallKind::kScan, 1);
  call.About(steps);
  call.Send(0, DrawPassage(kernel_, *process_, Duplicates::kNever, steps), server_,
            [server = server_, process = process_, copy = request](Responder<Answer> reply) {
              const Origin origin{process, reply.of_duplicate()};
              server->Scan(origin, copy, std::move(reply));
            });
  std::optional<Answer> answer = std::move(call.Wait().front());
  if (!answer.has_value()) return NoAnswer(CallKind::kScan);
  if (answer->ok()) {
    for (const Row& row : (*answer)->rows) server_->Heard(*process_, request.selectors, row);
  }
  return *std::move(answer);
}

std::vector<DrawnResult> SimStore::SendMutations(const std::vector<RowMutation>& mutations, bool draw) {
  using Answer = StoreServer::MutateResults;
  std::vector<RowGroup> groups = ByRow(mutations);
  Steps steps = 0;
  for (RowGroup& group : groups) {
    for (const RowMutation& mutation : *group.mutations) group.steps |= kernel_->steps.Of(process_->id(), mutation);
    steps |= group.steps;
  }
  if (absl::Status status = Begin(CallKind::kMutate, steps); !status.ok()) {
    return std::vector<DrawnResult>(mutations.size(), {status, std::nullopt});
  }
  Call<Answer> call(kernel_, process_, CallKind::kMutate, groups.size());
  call.About(steps);
  BatchPassages passages(kernel_, *process_, Duplicates::kPossible);
  for (size_t i = 0; i < groups.size(); ++i) {
    call.Send(i, passages.Next(groups[i].steps), server_,
              [server = server_, process = process_, batch = groups[i].mutations, draw](Responder<Answer> reply) {
                const Origin origin{process, reply.of_duplicate()};
                if (draw) {
                  server->MutateThenDraw(origin, batch, std::move(reply));
                } else {
                  server->Mutate(origin, batch, std::move(reply));
                }
              });
  }
  std::vector<DrawnResult> results(mutations.size(), {NoAnswer(CallKind::kMutate), std::nullopt});
  const std::vector<std::optional<Answer>> answers = call.Wait();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!answers[i].has_value()) continue;
    for (size_t j = 0; j < groups[i].entries.size(); ++j) results[groups[i].entries[j]] = (*answers[i])[j];
  }
  return results;
}

std::vector<absl::StatusOr<MutateResult>> SimStore::Mutate(const std::vector<RowMutation>& mutations) {
  std::vector<absl::StatusOr<MutateResult>> results;
  for (DrawnResult& result : SendMutations(mutations, false)) results.push_back(std::move(result.result));
  return results;
}

std::vector<DrawnResult> SimStore::MutateThenDraw(const std::vector<RowMutation>& mutations) {
  return SendMutations(mutations, kernel_->faults.draws_with_locks);
}

absl::StatusOr<JointResult> SimStore::MutateTogether(const JointMutation& mutation, Oracle* oracle) {
  using Answer = absl::StatusOr<JointResult>;
  if (!CanMutateTogether()) return Store::MutateTogether(mutation, oracle);
  auto copy = std::make_shared<const JointMutation>(mutation);
  const Steps steps = kernel_->steps.Of(mutation);
  PERCOLATOR_RETURN_IF_ERROR(Begin(CallKind::kMutateTogether, steps));
  Call<Answer> call(kernel_, process_, CallKind::kMutateTogether, 1);
  call.About(steps);
  call.Send(0, DrawPassage(kernel_, *process_, Duplicates::kPossible, steps), server_,
            [server = server_, process = process_, copy = std::move(copy)](Responder<Answer> reply) {
              const Origin origin{process, reply.of_duplicate()};
              server->MutateTogether(origin, copy, std::move(reply));
            });
  std::optional<Answer> answer = std::move(call.Wait().front());
  return answer.has_value() ? *std::move(answer) : NoAnswer(CallKind::kMutateTogether);
}

template <typename Answer>
Answer SimStore::Quietly(std::function<Answer()> serve, Steps steps) {
  PERCOLATOR_RETURN_IF_ERROR(Begin(CallKind::kTable, steps));
  Call<Answer> call(kernel_, process_, CallKind::kTable, 1);
  call.About(steps);
  call.Send(0, DrawQuietPassage(kernel_, *process_, steps), server_,
            [serve = std::move(serve)](Responder<Answer> reply) { reply(serve()); });
  std::optional<Answer> answer = std::move(call.Wait().front());
  return answer.has_value() ? *std::move(answer) : NoAnswer(CallKind::kTable);
}

absl::Status SimStore::RaiseSafePoint(Timestamp ts) {
  return Quietly<absl::Status>([server = server_, ts] { return server->RaiseSafePoint(ts); },
                               Only(Step::kRaiseSafePoint));
}

absl::StatusOr<Timestamp> SimStore::SafePoint() {
  return Quietly<absl::StatusOr<Timestamp>>([disk = server_->disk()] { return disk->SafePoint(); },
                                            Only(Step::kSafePoint));
}

absl::StatusOr<std::vector<std::string>> SimStore::SampleRowKeys(const std::string& name) {
  return Quietly<absl::StatusOr<std::vector<std::string>>>(
      [disk = server_->disk(), name] { return disk->SampleRowKeys(name); });
}

absl::Status SimStore::CreateTable(const TableInfo& info) {
  return Quietly<absl::Status>([disk = server_->disk(), info] { return disk->CreateTable(info); });
}

absl::Status SimStore::DropTable(const std::string& name) {
  return Quietly<absl::Status>([disk = server_->disk(), name] { return disk->DropTable(name); });
}

absl::StatusOr<std::vector<TableInfo>> SimStore::ListTables() {
  return Quietly<absl::StatusOr<std::vector<TableInfo>>>([disk = server_->disk()] { return disk->ListTables(); });
}

absl::Status SimStore::Close() {
  closed_ = true;
  return absl::OkStatus();
}

}  // namespace percolator::sim
