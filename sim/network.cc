// SPDX-License-Identifier: Apache-2.0

#include "sim/network.h"

#include <utility>

#include "src/base/strings.h"

namespace percolator::sim {
namespace {

Duration Latency(Kernel* kernel, ActorId actor, Site length, Site slow, double slow_rate, bool* is_slow) {
  const Faults& faults = kernel->faults;
  Duration latency = kernel->chance.Between(actor, length, faults.latency_min, faults.latency_max);
  *is_slow = kernel->chance.Happens(actor, slow, slow_rate);
  if (*is_slow) {
    latency += kernel->chance.Between(actor, Site::kSlowLength, Duration(0), faults.slow_max);
  }
  return latency;
}

}  // namespace

Passage DrawPassage(Kernel* kernel, const Process& from, Duplicates duplicates, Steps steps) {
  const Faults& faults = kernel->faults;
  const ActorId actor = from.id();
  Chance& chance = kernel->chance;
  Passage passage{.steps = steps};
  passage.request_lost = chance.Happens(actor, Site::kRequestLost, faults.rates.request_lost);
  passage.reply_lost = chance.Happens(actor, Site::kReplyLost, faults.rates.reply_lost);
  passage.there =
      Latency(kernel, actor, Site::kThere, Site::kSlowRequest, faults.rates.slow_request, &passage.slow_there);
  passage.back = Latency(kernel, actor, Site::kBack, Site::kSlowReply, faults.rates.slow_reply, &passage.slow_back);
  if (duplicates == Duplicates::kPossible && chance.Happens(actor, Site::kDuplicate, faults.rates.duplicate)) {
    passage.again = chance.Between(actor, Site::kDuplicateDelay, faults.latency_min, faults.duplicate_max);
  }
  return passage;
}

void CountMishaps(const Passage& passage, CoveredPairs* covered) {
  if (passage.request_lost) covered->Add(passage.steps, Mishap::kRequestLost);
  if (passage.reply_lost) covered->Add(passage.steps, Mishap::kReplyLost);
  if (passage.slow_there) covered->Add(passage.steps, Mishap::kSlowRequest);
  if (passage.slow_back) covered->Add(passage.steps, Mishap::kSlowReply);
  if (passage.again.has_value()) covered->Add(passage.steps, Mishap::kDuplicate);
}

Passage DrawQuietPassage(Kernel* kernel, const Process& from, Steps steps) {
  const Faults& faults = kernel->faults;
  const ActorId actor = from.id();
  Passage passage{.steps = steps};
  passage.request_lost = kernel->chance.Happens(actor, Site::kRequestLost, faults.rates.table_lost);
  passage.reply_lost = kernel->chance.Happens(actor, Site::kReplyLost, faults.rates.table_lost);
  passage.there = kernel->chance.Between(actor, Site::kThere, faults.latency_min, faults.latency_max);
  passage.back = kernel->chance.Between(actor, Site::kBack, faults.latency_min, faults.latency_max);
  return passage;
}

void Server::Note(std::string_view what) {
  kernel_->trace.Mark(what);
  if (kernel_->trace.on()) kernel_->trace.Line(kernel_->now(), name_, StrCat("! ", what));
}

void Server::Restart(Duration down) {
  Note("restarts");
  ++epoch_;
  up_again_ = kernel_->now() + down;
  OnRestart();
}

void Server::RestartPerhaps(Site site, Steps steps) {
  const Faults& faults = kernel_->faults;
  double rate = restart_rate_ == nullptr ? 0 : faults.rates.*restart_rate_;
  if ((faults.focus_steps & steps) != 0) rate *= faults.focus_factor;
  if (!kernel_->chance.Happens(actor_, site, rate)) return;
  Restart(kernel_->chance.Between(actor_, Site::kDownLength, Duration(0), kernel_->faults.down_max));
}

bool Server::Arrive(Steps steps) {
  if (!up()) return false;
  const uint64_t epoch = epoch_;
  RestartPerhaps(Site::kRestartBefore, steps);
  return epoch == epoch_;  // a message that arrives during even the shortest restart is lost
}

void CallBase::Settle() {
  if (--open == 0) kernel->scheduler.Wake(waiter);
}

void CallBase::NobodyThere(std::shared_ptr<CallBase> self, const Server& server, const Passage& passage) {
  NoteMessage(*this, "server down");
  if (!kernel->chance.Happens(server.actor(), Site::kRefused, 0.5)) return;
  kernel->scheduler.At(kernel->now() + passage.back, process->id(), "refused",
                       [self = std::move(self)] { self->Settle(); });
}

void CallBase::Await() {
  process->AfterSend(kind, steps);
  if (open > 0 && !process->crashed()) {
    waiter = kernel->scheduler.Here();
    process->AwaitAnswer(CallName(kind), deadline);
  }
  over = true;
}

bool Hear(const CallBase& call, const Server& server, uint64_t epoch) {
  const bool restarted = server.epoch() != epoch;
  if (restarted && call.kernel->chance.Happens(server.actor(), Site::kReplyDies, 0.5)) {
    NoteMessage(call, "reply lost in a restart");
    return false;
  }
  if (call.over) NoteMessage(call, "reply too late");
  return !call.over;
}

void NoteMessage(const CallBase& call, std::string_view what) {
  Trace& trace = call.kernel->trace;
  trace.Mark(what);
  if (!trace.on()) return;
  trace.Line(call.kernel->now(), call.process->name(), StrCat("! ", CallName(call.kind), ": ", what));
}

}  // namespace percolator::sim
