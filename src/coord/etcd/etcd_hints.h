// Hints through etcd: one key for each process that sends, which the others watch.

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

class EtcdHints {
 public:
  // The client must outlive this.
  EtcdHints(EtcdClient* client, const EtcdOptions& options);
  ~EtcdHints();
  EtcdHints(const EtcdHints&) = delete;
  EtcdHints& operator=(const EtcdHints&) = delete;

  // Never waits: what would be too much is dropped.
  void Send(const CellName& cell);
  // See Coordinator::SetHintListener. It hears what other processes send.
  void Listen(Coordinator::HintListener listener);

 private:
  void Run();
  // The hints that wait, once there are any, but not before `pause` has passed. Empty: it is to end.
  std::string TakeAfter(Duration pause);
  // Puts hints, all at once.
  void Put(const std::string& hints);
  void Hear(const etcd::KeyValue& put);

  EtcdClient* const client_;
  const std::string prefix_;  // of the keys of all
  const uint64_t sender_;     // a number that no other has
  const std::string key_;
  uint64_t lease_until_ = 0;  // of the thread that sends alone, by Clock::BootMicros
  ListenerSlot listener_;

  Mutex mutex_;
  const std::unique_ptr<WaitQueue> changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::string waiting_ ABSL_GUARDED_BY(mutex_);  // encoded

  Mutex watch_mutex_;
  std::unique_ptr<EtcdWatch> watch_ ABSL_GUARDED_BY(watch_mutex_);
  std::thread thread_;  // last: it uses the rest
};

}  // namespace percolator

#endif  // PERCOLATOR_COORD_ETCD_ETCD_HINTS_H_
