// SPDX-License-Identifier: Apache-2.0

// The conformance suite: the contract of percolator/spi/coordinator.h, tested on every kind of coordinator.
//
// The suite is the object library coord_conformance_suite. A test program links it and registers the coordinators to
// test:
//
//     const bool kRegistered = RegisterCoordinator({"remote", &StartServer});
//
// Where the header leaves a choice, the suite fixes it:
//
// - All connections see the acts of a session and the consequences of its end; its end soon (Eventually), the rest when
//   the call returns.
// - A session that does not exist leads nothing and claims nothing: FailedPrecondition. Release of a claim that the
//   session does not have succeeds, without effect.
// - A session that already leads, or has the claim, gets true again.
// - Names are any bytes.
// - Once SetHintListener returns, the previous listener is not called any more, and no call of it is in progress. An
//   empty listener only removes the previous one.

#ifndef PERCOLATOR_TESTS_COORD_CONFORMANCE_H_
#define PERCOLATOR_TESTS_COORD_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "percolator/spi/coordinator.h"
#include "tests/harness/eventually.h"
#include "tests/testing/status_matchers.h"

namespace percolator {

// A place of coordination, without any session at first. Its resources (a server, a folder) live as long as the place.
class CoordinatorPlace {
 public:
  virtual ~CoordinatorPlace() = default;

  // The coordinator as a new process sees it. It may be the same for all, if there can be only one process. Lives until
  // Restart, or as long as the place.
  virtual Coordinator* Connect() = 0;
  // Ends every process and the coordination service, and starts it again. REQUIRES: no session is open.
  virtual void Restart() = 0;
};

// A kind of coordinator to test.
struct CoordinatorKind {
  std::string name;
  std::function<std::unique_ptr<CoordinatorPlace>()> make;
};

inline void PrintTo(const CoordinatorKind& kind, std::ostream* os) { *os << kind.name; }

// Adds a kind of coordinator to those that the suite tests. Called before main, by initialising a global.
bool RegisterCoordinator(CoordinatorKind kind);

// Runs `task` in this number of threads at once, each with its number.
void InThreads(int count, const std::function<void(int thread)>& task);

// A session that no coordinator has opened.
class StrangeSession final : public Session {
 public:
  explicit StrangeSession(SessionId id) : id_(id) {}
  SessionId id() const override { return id_; }
  bool alive() const override { return false; }
  absl::Status ReportOldestSnapshot(Timestamp /*oldest*/) override { return absl::OkStatus(); }

 private:
  const SessionId id_;
};

// A test with two connections, here and there.
class CoordinatorTest : public ::testing::TestWithParam<CoordinatorKind> {
 protected:
  CoordinatorTest() : place_(GetParam().make()) { Connect(); }

  void Connect();
  // As Restart of the place, with two new connections.
  void Restart();

  // Calls that have to succeed.
  static std::unique_ptr<Session> Open(Coordinator* coordinator);
  static bool IsAlive(Coordinator* coordinator, SessionId session);
  static Timestamp Oldest(Coordinator* coordinator);
  static bool Campaign(Coordinator* coordinator, std::string_view role, const Session& session);
  static bool Claim(Coordinator* coordinator, std::string_view table, std::string_view row, const Session& session);

  std::unique_ptr<CoordinatorPlace> place_;
  Coordinator* here_ = nullptr;
  Coordinator* there_ = nullptr;
};

}  // namespace percolator

#endif  // PERCOLATOR_TESTS_COORD_CONFORMANCE_H_
