// SPDX-License-Identifier: Apache-2.0

// Hints through etcd: each process puts its hints into its own key, which the other processes watch.

#ifndef PERCOLATOR_COORD_ETCD_ETCD_HINTS_H_
#define PERCOLATOR_COORD_ETCD_ETCD_HINTS_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "percolator/spi/coordinator.h"
#include "percolator/spi/mutex.h"
#include "percolator/spi/runtime.h"
#include "src/coord/listener_slot.h"
#include "src/etcd/etcd_client.h"
#include "src/etcd/etcd_options.h"

namespace percolator {

// Thread-safe.
class EtcdHints {
 public:
  // REQUIRES: `client` outlives this object.
  EtcdHints(EtcdClient* client, const EtcdOptions& options);
  ~EtcdHints();
  EtcdHints(const EtcdHints&) = delete;
  EtcdHints& operator=(const EtcdHints&) = delete;

  // Queues a hint, or drops it if the queue is full. Never waits.
  void Send(const CellName& cell);
  // Sets the listener for hints of other processes. See Coordinator::SetHintListener.
  void Listen(Coordinator::HintListener listener);

 private:
  void Run();
  // Waits for `pause`, and then for queued hints, and takes all of them. Returns an empty string when this object ends.
  std::string TakeAfter(Duration pause);
  // Puts hints as one value.
  void Put(const std::string& hints);
  void Receive(const etcd::KeyValue& put);

  EtcdClient* const client_;
  const std::string prefix_;  // the prefix of the keys of all processes
  const uint64_t sender_;     // a unique number of this process
  const std::string key_;
  uint64_t lease_until_ = 0;  // Used by the sending thread only, a time of Clock::BootMicros.
  ListenerSlot listener_;

  Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);  // the queued hints, encoded

  Mutex watch_mutex_;
  std::unique_ptr<EtcdWatch> watch_ ABSL_GUARDED_BY(watch_mutex_);
  std::thread thread_;  // last, because it uses the other members
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_HINTS_H_
