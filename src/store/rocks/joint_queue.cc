#include "src/store/rocks/joint_queue.h"

#include <utility>

namespace percolator {

JointQueue::JointQueue(std::function<void(const Group&)> apply) : apply_(std::move(apply)) {}

void JointQueue::Run(Request* request) {
  MutexLock lock(&mutex_);
  waiting_.push_back(request);
  while (!request->done) {
    if (leading_) {
      request->wake.Wait(&mutex_);
    } else {
      Lead();
    }
  }
}

void JointQueue::Lead() {
  leading_ = true;
  TakeGroup();
  mutex_.Unlock();
  apply_(group_);
  mutex_.Lock();
  leading_ = false;
  ++groups_done_;
  for (Request* request : group_) {
    request->done = true;
    request->wake.NotifyOne();
  }
  if (!waiting_.empty()) waiting_.front()->wake.NotifyOne();
  group_done_.NotifyAll();
}

// The first who waits, and everybody behind who can go with it.
void JointQueue::TakeGroup() {
  group_.clear();
  size_t bytes = 0;
  size_t left = 0;
  for (Request* request : waiting_) {
    const bool fits = group_.empty() || (group_.size() < kGroupRequests && bytes + request->bytes <= kGroupBytes &&
                                         request->oracle == group_[0]->oracle);
    if (fits) {
      group_.push_back(request);
      bytes += request->bytes;
    } else {
      waiting_[left++] = request;
    }
  }
  waiting_.resize(left);
}

size_t JointQueue::waiting() const {
  MutexLock lock(&mutex_);
  return waiting_.size();
}

void JointQueue::WaitForGroup() {
  MutexLock lock(&mutex_);
  const uint64_t groups_done = groups_done_;
  while (leading_ && groups_done_ == groups_done) group_done_.Wait(&mutex_);
}

}  // namespace percolator
