// SPDX-License-Identifier: Apache-2.0

#include "sim/sim_oracle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {

OracleServer::OracleServer(Kernel* kernel) : Server(kernel, kOracleActor, "oracle", &Faults::Rates::oracle_restart) {}

uint64_t OracleServer::ClockMicros() const {
  const int64_t micros = static_cast<int64_t>(kFirst) + (kernel_->now() + clock_offset_).count();
  return static_cast<uint64_t>(std::max<int64_t>(micros, 0));
}

Timestamp OracleServer::Draw(uint32_t count) {
  const uint64_t first = std::max(next_, ClockMicros());
  next_ = first + count;
  // O2: timestamps that are handed out are below the durable bound.
  if (next_ > durable_bound_) durable_bound_ = next_ + static_cast<uint64_t>(kernel_->faults.oracle_window.count());
  kernel_->trace.Mark(first);
  if (watcher_ != nullptr) watcher_->OnTimestamps(kernel_->now(), Timestamp(first), count);
  return Timestamp(first);
}

absl::StatusOr<Timestamp> OracleServer::Serve(uint32_t count) {
  if (!Arrive()) return absl::UnavailableError("no answer from the oracle");
  const Timestamp first = Draw(count);
  Served();
  return first;
}

void OracleServer::OnRestart() {
  next_ = durable_bound_;  // O3
  if (kernel_->chance.Happens(actor(), Site::kClockStep, kernel_->faults.rates.clock_step)) {
    const Duration most = kernel_->faults.clock_step_max;
    clock_offset_ = kernel_->chance.Between(actor(), Site::kClockStepLength, -most, most);
  }
}

absl::StatusOr<Timestamp> SimOracle::GetTimestamps(uint32_t count) {
  const absl::Status no_answer = absl::UnavailableError("no answer from the oracle");
  if (count == 0 || count > kMaxCount) return absl::InvalidArgumentError(StrCat("asked for ", count, " timestamps"));
  const Steps steps = Only(Step::kTimestamp);
  if (!process_->EnterCall(CallKind::kOracle, steps)) return no_answer;
  Call<Timestamp> call(kernel_, process_, CallKind::kOracle, 1);
  call.About(steps);
  call.Send(0, DrawPassage(kernel_, *process_, Duplicates::kPossible, steps), server_,
            [kernel = kernel_, process = process_, server = server_, count](Responder<Timestamp> reply) {
              const Timestamp first = server->Draw(count);
              if (kernel->trace.on()) {
                kernel->trace.Line(kernel->now(), process->name(), StrCat("timestamp -> ", first.ToString()));
              }
              reply(first);
            });
  const std::optional<Timestamp> answer = call.Wait().front();
  return answer.has_value() ? absl::StatusOr<Timestamp>(*answer) : no_answer;
}

}  // namespace percolator::sim
