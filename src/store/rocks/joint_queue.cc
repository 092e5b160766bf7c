// SPDX-License-Identifier: Apache-2.0

#include "src/store/rocks/joint_queue.h"

#include <utility>

#include "absl/algorithm/container.h"

namespace percolator {

JointQueue::JointQueue(std::function<void(const Group&)> apply) : apply_(std::move(apply)) {}

void JointQueue::Request::Send(Signal sent) {
  MutexLock lock(&mutex);
  signal = sent;
  wake.NotifyOne();
}

JointQueue::Request::Signal JointQueue::Request::Wait() {
  MutexLock lock(&mutex);
  while (signal == Signal::kNone) wake.Wait(&mutex);
  return std::exchange(signal, Signal::kNone);
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
    if (request->Wait() == Request::Signal::kDone) return;
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
    // A waiting request stays valid while the mutex is held. Another thread may come first, and lead for it.
    if (!waiting_.empty()) waiting_.front()->Send(Request::Signal::kTryToLead);
  }
  for (Request* request : group) {
    if (request != own) request->Send(Request::Signal::kDone);  // `request` may be gone after this
  }
}

// Takes the first waiting request, and all later ones that fit into its group.
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
