// SPDX-License-Identifier: Apache-2.0

// The way of a call from a process to a server and back, and the faults that may happen to it.
//
// A call is made of one or more messages: the parts of a batch. A message holds copies of its data, never a view of its
// sender's, because it may arrive when the sender is long gone. Each message travels by a Passage that was drawn for
// it: it may get lost, be slow, arrive a second time, or lose its answer. The caller gets the answers that came in
// time, and nothing for the rest; it cannot know whether these were served.
//
//     Call<Answer> call(kernel, process, CallKind::kRead, parts);
//     call.Send(part, passage, server, [request](Responder<Answer> reply) { reply(Serve(request)); });
//     std::vector<std::optional<Answer>> answers = call.Wait();
//
// A server need not answer at once: it may keep the Responder, or drop it without an answer.

#ifndef PERCOLATOR_SIM_NETWORK_H_
#define PERCOLATOR_SIM_NETWORK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/kernel.h"
#include "sim/process.h"

namespace percolator::sim {

// The faults drawn for a message.
struct Passage {
  Steps steps = 0;  // the steps that the message belongs to
  bool request_lost = false;
  bool reply_lost = false;
  bool slow_there = false;
  bool slow_back = false;
  Duration there{0};
  Duration back{0};
  std::optional<Duration> again;  // when it arrives a second time, counted from its sending
};

// Whether a message may arrive twice. A message that changes nothing is not sent twice: that would only cost time.
enum class Duplicates : uint8_t { kNever, kPossible };

Passage DrawPassage(Kernel* kernel, const Process& from, Duplicates duplicates, Steps steps = 0);
// For calls about tables: sometimes late, and lost only with Faults::Rates::table_lost.
Passage DrawQuietPassage(Kernel* kernel, const Process& from, Steps steps = 0);
// Counts the mishaps of a message with this passage.
void CountMishaps(const Passage& passage, CoveredPairs* covered);

// A server as the network sees it: up, or down while it restarts.
class Server {
 public:
  // If the rate is null, it does not restart by chance.
  Server(Kernel* kernel, ActorId actor, std::string_view name, double Faults::Rates::*restart_rate)
      : kernel_(kernel), actor_(actor), name_(name), restart_rate_(restart_rate) {}
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  bool up() const { return kernel_->now() >= up_again_; }
  // The number of restarts.
  uint64_t epoch() const { return epoch_; }
  ActorId actor() const { return actor_; }

  // Restarts now, and is up again after this time. Durable data stays; messages that arrive meanwhile are lost.
  void Restart(Duration down);
  // Brings the server up at once, if it is down.
  void ComeUp() { up_again_ = kernel_->now(); }

  // For the network. Arrive: a message with these steps arrives; returns false if the server is down. Served: the
  // message has been served.
  bool Arrive(Steps steps = 0);
  void Served(Steps steps = 0) { RestartPerhaps(Site::kRestartAfter, steps); }

 protected:
  // Drops everything that is not durable.
  virtual void OnRestart() = 0;
  void Note(std::string_view what);

  Kernel* const kernel_;

 private:
  void RestartPerhaps(Site site, Steps steps);

  const ActorId actor_;
  const std::string_view name_;
  double Faults::Rates::*const restart_rate_;
  Duration up_again_{0};
  uint64_t epoch_ = 0;
};

// The state that a call and its answers share. The last of them destroys it.
struct CallBase {
  CallBase(Kernel* the_kernel, Process* from, CallKind the_kind, size_t parts)
      : kernel(the_kernel),
        process(from),
        kind(the_kind),
        deadline(the_kernel->now() + the_kernel->faults.call_timeout),
        open(parts) {}

  // A part has its answer, or the caller knows that it will get none.
  void Settle();
  // The server was down when a part arrived. The caller may learn this.
  void NobodyThere(std::shared_ptr<CallBase> self, const Server& server, const Passage& passage);
  // Waits until all parts are settled, the time is over, or the process dies.
  void Await();

  Kernel* const kernel;
  Process* const process;
  const CallKind kind;
  const Duration deadline;
  size_t open;        // parts not settled
  bool over = false;  // the caller no longer waits
  Steps steps = 0;
  Scheduler::Parking waiter;
};

template <typename Answer>
struct CallState : CallBase {
  CallState(Kernel* the_kernel, Process* from, CallKind the_kind, size_t parts)
      : CallBase(the_kernel, from, the_kind, parts), answers(parts) {}
  std::vector<std::optional<Answer>> answers;
};

// Sends the answer to one message back.
template <typename Answer>
class Responder {
 public:
  // For a duplicate: the answer goes to no caller.
  Responder() = default;
  Responder(std::shared_ptr<CallState<Answer>> call, size_t part, const Passage& passage, Server* server)
      : call_(std::move(call)), part_(part), passage_(passage), server_(server), epoch_(server->epoch()) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) = delete;

  void operator()(Answer answer);
  // True if no caller waits for the answer.
  bool of_duplicate() const { return call_ == nullptr; }

 private:
  std::shared_ptr<CallState<Answer>> call_;
  size_t part_ = 0;
  Passage passage_;
  Server* server_ = nullptr;
  uint64_t epoch_ = 0;
};

template <typename Answer>
class Call {
 public:
  using Serve = std::function<void(Responder<Answer>)>;

  // REQUIRES: process->EnterCall(kind) was true.
  Call(Kernel* kernel, Process* process, CallKind kind, size_t parts)
      : state_(std::make_shared<CallState<Answer>>(kernel, process, kind, parts)) {}

  // The steps of the call; each message has its own in its passage.
  void About(Steps steps) { state_->steps = steps; }
  // Each part is sent once. `serve` is called when the message arrives: once, twice or never.
  void Send(size_t part, const Passage& passage, Server* server, Serve serve);
  // The answers that came, by part.
  std::vector<std::optional<Answer>> Wait();

 private:
  std::shared_ptr<CallState<Answer>> state_;
};

// ---------------------------------------------------------------------------------------------------------------------

// Whether an answer that has arrived is delivered. False: it gets lost in a restart, or comes too late.
bool Hear(const CallBase& call, const Server& server, uint64_t epoch);
// A line of the trace about a message.
void NoteMessage(const CallBase& call, std::string_view what);

template <typename Answer>
void Responder<Answer>::operator()(Answer answer) {
  if (call_ == nullptr) return;
  if (passage_.reply_lost) {
    NoteMessage(*call_, "reply lost");
    return;
  }
  Kernel* const kernel = call_->kernel;
  const ActorId actor = call_->process->id();
  kernel->scheduler.At(
      kernel->now() + passage_.back, actor, "reply",
      [call = std::move(call_), part = part_, server = server_, epoch = epoch_, answer = std::move(answer)]() mutable {
        if (!Hear(*call, *server, epoch)) return;
        call->answers[part] = std::move(answer);
        call->Settle();
      });
}

template <typename Answer>
void Call<Answer>::Send(size_t part, const Passage& passage, Server* server, Serve serve) {
  Kernel* const kernel = state_->kernel;
  const ActorId actor = state_->process->id();
  CountMishaps(passage, &kernel->covered);
  if (passage.again.has_value()) {
    kernel->scheduler.At(kernel->now() + *passage.again, actor, "again", [call = state_, part, passage, serve, server] {
      if (!server->Arrive()) return;
      NoteMessage(*call, "arrives a second time");
      serve(call->kernel->faults.hears_copies ? Responder<Answer>(call, part, passage, server) : Responder<Answer>());
      server->Served();
    });
  }
  const bool heard = !passage.again.has_value() || !kernel->faults.hears_copies;
  if (passage.request_lost) {
    NoteMessage(*state_, "request lost");
    return;
  }
  kernel->scheduler.At(kernel->now() + passage.there, actor, "request",
                       [call = state_, part, passage, server, heard, serve = std::move(serve)] {
                         const uint64_t epoch = server->epoch();
                         CoveredPairs& covered = call->kernel->covered;
                         if (!server->Arrive(passage.steps)) {
                           if (server->epoch() != epoch) covered.Add(passage.steps, Mishap::kRestartBefore);
                           call->NobodyThere(call, *server, passage);
                           return;
                         }
                         serve(heard ? Responder<Answer>(call, part, passage, server) : Responder<Answer>());
                         server->Served(passage.steps);
                         if (server->epoch() != epoch) covered.Add(passage.steps, Mishap::kRestartAfter);
                       });
}

template <typename Answer>
std::vector<std::optional<Answer>> Call<Answer>::Wait() {
  state_->Await();
  // A dead process gets no answers.
  if (state_->process->crashed()) return std::vector<std::optional<Answer>>(state_->answers.size());
  return std::move(state_->answers);
}

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_NETWORK_H_
