// SPDX-License-Identifier: Apache-2.0

// StopSignals: waits for SIGINT or SIGTERM, which stop a server.

#ifndef PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_
#define PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_

#include <signal.h>

namespace percolator::cli {

// REQUIRES: constructed before the process starts any thread, so that every thread blocks these signals.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  void Wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }
  // Afterwards, another signal ends the process immediately.
  void Unblock() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_;
};

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_
