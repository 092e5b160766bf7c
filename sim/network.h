// The way of a call from a process to a server and back, and all that may happen to it there.
//
// A call is made of one or more messages: the parts of a batch. A message holds copies of what it says, never a view of
// its sender, because it may arrive when the sender is long gone. Each message travels by a Passage that was drawn for
// it: it may get lost, be slow, arrive a second time, or lose its answer. The caller gets the answers that came in time,
// and nothing for the rest; it can't tell whether these were served.
//
//     Call<Answer> call(kernel, process, CallKind::kRead, parts);
//     call.Send(part, passage, server, [request](Responder<Answer> reply) { reply(Serve(request)); });
//     std::vector<std::optional<Answer>> answers = call.Wait();
//
// A server need not answer at once: it may keep the Responder, or drop it without a word.

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

// What will happen to a message.
struct Passage {
  Steps steps = 0;  // what the message says
  bool request_lost = false;
  bool reply_lost = false;
  bool slow_there = false;
  bool slow_back = false;
  Duration there{0};
  Duration back{0};
  std::optional<Duration> again;  // when it arrives a second time, from its sending
};

// Whether a message may arrive twice: what changes nothing is not sent twice, that would only cost time.
enum class Duplicates : uint8_t { kNever, kPossible };

Passage DrawPassage(Kernel* kernel, const Process& from, Duplicates duplicates, Steps steps = 0);
// For calls about tables: late at times, and lost with Faults::Rates::table_lost only.
Passage DrawQuietPassage(Kernel* kernel, const Process& from, Steps steps = 0);
// A message with this passage is sent.
void CountMishaps(const Passage& passage, CoveredPairs* covered);

// A server as the network sees it: up, or down for a while because it restarts.
class Server {
 public:
  // Without a rate it does not restart by chance.
  Server(Kernel* kernel, ActorId actor, std::string_view name, double Faults::Rates::*restart_rate)
      : kernel_(kernel), actor_(actor), name_(name), restart_rate_(restart_rate) {}
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  bool up() const { return kernel_->now() >= up_again_; }
  // Counts restarts.
  uint64_t epoch() const { return epoch_; }
  ActorId actor() const { return actor_; }

  // Restarts now, and is up again after this time. What is durable stays; messages that arrive meanwhile are lost.
  void Restart(Duration down);
  // Up at once, if it is down.
  void ComeUp() { up_again_ = kernel_->now(); }

  // For the network: a message that says this arrives; false: nobody is there. And: it has been served.
  bool Arrive(Steps steps = 0);
  void Served(Steps steps = 0) { RestartPerhaps(Site::kRestartAfter, steps); }

 protected:
  // Forgets what is not durable.
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

// What a call and the answers to it share; whichever lives longest.
struct CallBase {
  CallBase(Kernel* the_kernel, Process* from, CallKind the_kind, size_t parts)
      : kernel(the_kernel),
        process(from),
        kind(the_kind),
        deadline(the_kernel->now() + the_kernel->faults.call_timeout),
        open(parts) {}

  // A part has its answer, or the caller knows that there will be none.
  void Settle();
  // Nobody was there to serve a part: the caller may hear of it.
  void NobodyThere(std::shared_ptr<CallBase> self, const Server& server, const Passage& passage);
  // Waits until all parts are settled, the time is over, or the process dies.
  void Await();

  Kernel* const kernel;
  Process* const process;
  const CallKind kind;
  const Duration deadline;
  size_t open;        // parts not settled
  bool over = false;  // the caller has stopped listening
  Steps steps = 0;
  Scheduler::Parking waiter;
};

template <typename Answer>
struct CallState : CallBase {
  CallState(Kernel* the_kernel, Process* from, CallKind the_kind, size_t parts)
      : CallBase(the_kernel, from, the_kind, parts), answers(parts) {}
  std::vector<std::optional<Answer>> answers;
};

// Sends the answer to one message on its way back.
template <typename Answer>
class Responder {
 public:
  // To nobody: of a duplicate.
  Responder() = default;
  Responder(std::shared_ptr<CallState<Answer>> call, size_t part, const Passage& passage, Server* server)
      : call_(std::move(call)), part_(part), passage_(passage), server_(server), epoch_(server->epoch()) {}
  Responder(Responder&&) noexcept = default;
  Responder& operator=(Responder&&) = delete;

  void operator()(Answer answer);
  // Nobody is waiting for it.
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

  // What the call is about; each message says it of itself in its passage.
  void About(Steps steps) { state_->steps = steps; }
  // Each part is sent once. `serve` is called when the message arrives: once, never or twice.
  void Send(size_t part, const Passage& passage, Server* server, Serve serve);
  // The answers that came, by part.
  std::vector<std::optional<Answer>> Wait();

 private:
  std::shared_ptr<CallState<Answer>> state_;
};

// ---------------------------------------------------------------------------------------------------------------------

// What becomes of an answer that has arrived. False: it gets lost in a restart, or comes too late.
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
  // The dead hear nothing.
  if (state_->process->crashed()) return std::vector<std::optional<Answer>>(state_->answers.size());
  return std::move(state_->answers);
}

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_NETWORK_H_
