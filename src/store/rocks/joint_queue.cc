#include "src/store/rocks/joint_queue.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace percolator {

JointQueue::JointQueue(std::function<void(const Group&)> apply) : apply_(std::move(apply)) {}

void JointQueue::Request::Tell(Told what) {
  MutexLock lock(&mutex);
  told = what;
  wake.NotifyOne();
}

JointQueue::Request::Told JointQueue::Request::Wait() {
  MutexLock lock(&mutex);
  while (told == Told::kNothing) wake.Wait(&mutex);
  return std::exchange(told, Told::kNothing);
}

void JointQueue::Run(Request* request) {
  Group group;
  {
    MutexLock lock(&mutex_);
    waiting_.push_back(request);
    group = TryToLead();
  }
  for (;;) {
    if (!group.empty()) Lead(group, request);
    if (absl::c_linear_search(group, request)) return;
    if (request->Wait() == Request::Told::kDone) return;
    MutexLock lock(&mutex_);
    group = TryToLead();
  }
}

void JointQueue::Lead(const Group& group, const Request* own) {
  apply_(group);
  {
    MutexLock lock(&mutex_);
    led_ = false;
    ++groups_done_;
    group_done_.NotifyAll();
    // With the mutex held: what waits is there. Another thread may be quicker, and lead for it.
    if (!waiting_.empty()) waiting_.front()->Tell(Request::Told::kTryToLead);
  }
  for (Request* request : group) {
    if (request != own) request->Tell(Request::Told::kDone);  // after which it may be gone
  }
}

// The first who waits, and everybody behind who can go with it.
JointQueue::Group JointQueue::TryToLead() {
  if (led_ || waiting_.empty()) return {};
  led_ = true;
  Group group;
  size_t bytes = 0;
  size_t left = 0;
  for (Request* request : waiting_) {
    const bool fits = group.empty() || (group.size() < kGroupRequests && bytes + request->bytes <= kGroupBytes &&
                                        request->oracle == group.front()->oracle);
    if (fits) {
      group.push_back(request);
      bytes += request->bytes;
    } else {
      waiting_[left++] = request;
    }
  }
  waiting_.resize(left);
  return group;
}

size_t JointQueue::waiting() const {
  MutexLock lock(&mutex_);
  return waiting_.size();
}

void JointQueue::WaitForGroup() {
  MutexLock lock(&mutex_);
  const uint64_t groups_done = groups_done_;
  while (led_ && groups_done_ == groups_done) group_done_.Wait(&mutex_);
}

}  // namespace percolator
