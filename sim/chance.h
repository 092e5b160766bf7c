// SPDX-License-Identifier: Apache-2.0

// Chance: everything random in a simulated run, and the list of faults that it made happen.
//
// A draw is not a step in one long stream but a function of its place: H(seed, actor, site, n), where n counts the
// draws of this actor at this site. So removing one fault from a run, or making one process draw more often, does not
// change the draws of others; this makes shrinking possible.
//
// A fault is a draw that may go wrong, and has a name: (actor, site, n). Every fault that happened can be listed, and
// in a second run suppressed or forced:
//
//     chance.Suppress(fault)    does not happen, whatever the draw says       (shrinking)
//     chance.Force(fault)       happens                                       (trying every crash point in turn)

#ifndef PERCOLATOR_SIM_CHANCE_H_
#define PERCOLATOR_SIM_CHANCE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "percolator/options.h"

namespace percolator::sim {

// The source of a draw: a server, a process, or the world around them.
using ActorId = uint32_t;
inline constexpr ActorId kWorldActor = 0;
inline constexpr ActorId kStoreActor = 1;
inline constexpr ActorId kOracleActor = 2;
inline constexpr ActorId kCoordinatorActor = 3;
inline constexpr ActorId kFirstProcessActor = 4;

// The purpose of a draw: faults first, then draws that need only a number.
#define PERCOLATOR_SIM_SITES(S)                                                                            \
  S(RequestLost)    /* the request never arrives */                                                        \
  S(ReplyLost)      /* it is served, but its answer is lost */                                             \
  S(SlowRequest)    /* it arrives late, perhaps long after its sender has given up */                      \
  S(SlowReply)      /* the answer does so */                                                               \
  S(Duplicate)      /* it arrives a second time, much later */                                             \
  S(Crash)          /* the process dies before it sends */                                                 \
  S(CrashAfterSend) /* the process dies, its request is on the way */                                      \
  S(Pause)          /* the process stops for a while before it sends */                                    \
  S(PauseAfterSend) /* the same while it waits for the answer */                                           \
  S(SessionLost)    /* the process lives, but its sessions are declared dead for good */                   \
  S(RestartBefore)  /* the server restarts when a message arrives, before it is served */                  \
  S(RestartAfter)   /* the same right after */                                                             \
  S(ReplyDies)      /* an answer on its way is lost because its server restarts */                         \
  S(ApplyInRestart) /* a commit in one step that had its timestamp is applied though the store restarts */ \
  S(Refused)        /* a message to a server that is down is refused at once; otherwise lost */            \
  S(FalseDead)      /* a live session is reported dead, once */                                            \
  S(FalseAlive)     /* a dead session is reported alive, once */                                           \
  S(HintLost)       /* a hint does not arrive */                                                           \
  S(HintTwice)      /* a hint arrives twice */                                                             \
  S(SpuriousWake)   /* a wait ends for no reason */                                                        \
  S(ClockStep)      /* an oracle restarts on a machine with another clock */                               \
  S(FaultEnd)       /* later sites are not faults */                                                       \
  S(TieBreak)       /* the order of events at the same time */                                             \
  S(RuntimeRandom)  /* Runtime::Random */                                                                  \
  S(ClockStart)     /* the start of the clock of a process */                                              \
  S(WakeOne)        /* the waiter that is woken */                                                         \
  S(SpuriousDelay)  /* this and later sites: durations */                                                  \
  S(There)                                                                                                 \
  S(Back)                                                                                                  \
  S(Spread)                                                                                                \
  S(SlowLength)                                                                                            \
  S(DuplicateDelay)                                                                                        \
  S(PauseLength)                                                                                           \
  S(DownLength)                                                                                            \
  S(ClockStepLength)                                                                                       \
  S(OneStepLength)                                                                                         \
  S(ScanStep)                                                                                              \
  S(HintDelay)                                                                                             \
  S(Workload)   /* free for workloads: World::Draw */                                                      \
  S(DrawLength) /* between a lock and the timestamp that comes with it */

enum class Site : uint8_t {
#define PERCOLATOR_SIM_SITE(name) k##name,
  PERCOLATOR_SIM_SITES(PERCOLATOR_SIM_SITE)
#undef PERCOLATOR_SIM_SITE
      kCount,
};
std::string_view SiteName(Site site);

// One fault of a run.
struct FaultId {
  ActorId actor = kWorldActor;
  Site site = Site::kFaultEnd;
  uint64_t n = 0;  // the index of the draw of this actor at this site, from 0

  friend bool operator==(const FaultId&, const FaultId&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const FaultId& id) {
    return H::combine(std::move(h), id.actor, id.site, id.n);
  }
};
// "4/Crash/17", and back. ParseFaultId returns false if the text is malformed.
std::string ToText(const FaultId& fault);
bool ParseFaultId(std::string_view text, FaultId* fault);

// Mixes two numbers into one that looks random. The result is the same on every machine and in every run.
uint64_t Mix(uint64_t a, uint64_t b);
uint64_t HashBytes(std::string_view bytes);

class Chance {
 public:
  explicit Chance(uint64_t seed) : seed_(seed) {}
  Chance(const Chance&) = delete;
  Chance& operator=(const Chance&) = delete;

  // A number of 64 bits.
  uint64_t Draw(ActorId actor, Site site) { return At({actor, site, Count(actor, site)}); }
  // A number in [0, n). REQUIRES: n > 0.
  uint64_t Below(ActorId actor, Site site, uint64_t n) { return Draw(actor, site) % n; }
  // A duration in [low, high].
  Duration Between(ActorId actor, Site site, Duration low, Duration high);

  // Whether a fault that has this probability here happens.
  bool Happens(ActorId actor, Site site, double rate);

  void Suppress(const FaultId& fault) { orders_[fault] = false; }
  void Force(const FaultId& fault) { orders_[fault] = true; }
  // The faults that happened so far, in order.
  const std::vector<FaultId>& happened() const { return happened_; }

 private:
  using Counts = std::array<uint64_t, static_cast<size_t>(Site::kCount)>;

  uint64_t At(const FaultId& id) const;
  uint64_t Count(ActorId actor, Site site);

  const uint64_t seed_;
  std::vector<Counts> counts_;  // by actor
  absl::flat_hash_map<FaultId, bool> orders_;
  std::vector<FaultId> happened_;
};

}  // namespace percolator::sim

#endif  // PERCOLATOR_SIM_CHANCE_H_
