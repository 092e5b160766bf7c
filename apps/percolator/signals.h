// SIGINT and SIGTERM, as a thing to wait for: how a server is told to stop.

#ifndef PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_
#define PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_

#include <signal.h>

namespace percolator::cli {

// REQUIRES: made before any other thread, so that no thread of the process gets these signals by surprise.
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
  // From now on a signal ends the process at once: for those who do not want to wait for an orderly end.
  void Unblock() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_;
};

}  // namespace percolator::cli

#endif  // PERCOLATOR_APPS_PERCOLATOR_SIGNALS_H_
