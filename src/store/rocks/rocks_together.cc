// SPDX-License-Identifier: Apache-2.0

// MutateTogether: changes the rows of a transaction in one step, at a timestamp that is drawn within it.
//
// THE STEP
//
//   1. latch the rows: from here on no other thread changes them;
//   2. evaluate the conditions;
//   then the leader continues for all callers that have come this far (JointQueue):
//   3. close the rows;
//   4. draw the timestamps;
//   5. write everything as one batch;
//   6. open the rows, and release the latches.
//
// EVERY READER SEES IT (T8, T10). A transaction that reads at R must see every commit c <= R. R was drawn after c, c
// was drawn after the rows were closed, and a Read at R begins after R was drawn. So the Read finds a row of the commit
// either closed, and waits, or open again, and then the write is in RocksDB. Only its first look at the row's count has
// to find it open: a commit that closes the row later gets a timestamp above R. A Scan does not know its rows
// beforehand. It waits for the group that is under way when it begins, which may have drawn a timestamp, and not for
// later groups, whose timestamps are above R. So a stream of commits does not make a Read or a Scan wait forever.
//
// Mutate needs none of this: its timestamps are drawn while durable locks are in the rows, and every reader finds
// those.
//
// ALL OR NOTHING (T15). One batch is one record in RocksDB's log. If the process dies, RocksDB replays all of it or
// nothing. If the write fails, it is unknown which of the two will happen. The store stops, as after every failed write
// (decision 4). Readers must stop too: they would read as if the commit had not happened, and after the store is opened
// again it might have. So the rows stay closed until then, and reading them is an error.

#include <utility>

#include "absl/container/inlined_vector.h"
#include "percolator/spi/oracle.h"
#include "percolator/status_macros.h"
#include "src/base/check.h"
#include "src/base/strings.h"
#include "src/store/rocks/rocks_store.h"
#include "src/store/validate.h"

namespace percolator {
namespace {

// A batch with a larger buffer is not kept.
constexpr size_t kKeptBatchBytes = 1 << 20;

size_t BytesOfRow(const RowMutation& row) {
  size_t bytes = row.row.size();
  for (const Mutation& m : row.mutations) bytes += m.column.size() + m.value.size();
  return bytes;
}

}  // namespace

struct RocksStore::Joint : JointQueue::Request {
  const JointMutation* mutation = nullptr;
  Entries rows;
  LatchTable::Guard* latches = nullptr;
  bool staged = false;
  absl::StatusOr<JointResult> result = JointResult{};
};

absl::StatusOr<JointResult> RocksStore::MutateTogether(const JointMutation& mutation, Oracle* oracle) {
  PERCOLATOR_RETURN_IF_ERROR(MayUse());
  PERCOLATOR_RETURN_IF_ERROR(ValidateJointMutation(mutation, options_.limits));
  Joint joint;
  PERCOLATOR_RETURN_IF_ERROR(MakeJoint(mutation, oracle, &joint));
  LatchTable::Stripes stripes;
  stripes.reserve(joint.rows.size());
  {
    PointReader reader(&pools_);
    for (Entry& row : joint.rows) {
      if (FailsAlready(&row, &reader)) return JointResult{.failed_row = stripes.size()};
      stripes.push_back(row.stripe);
    }
  }
  LatchTable::Guard latches(&latches_, std::move(stripes));
  if (HoldTogether(&joint)) {
    joint.latches = &latches;
    joints_.Run(&joint);
  }
  return std::move(joint.result);
}

absl::Status RocksStore::MakeJoint(const JointMutation& mutation, Oracle* oracle, Joint* joint) const {
  joint->oracle = oracle;
  joint->mutation = &mutation;
  joint->rows.reserve(mutation.rows.size());
  for (const RowMutation& row : mutation.rows) {
    PERCOLATOR_RETURN_IF_ERROR(AddEntry(row, &joint->rows));
    joint->bytes += BytesOfRow(row);
  }
  return absl::OkStatus();
}

// Returns whether the joint mutation may go on. If not, its result says why.
bool RocksStore::HoldTogether(Joint* joint) {
  PointReader reader(&pools_);
  absl::Status status = MayWrite();
  status.Update(space_->Take(joint->bytes));
  status.Update(CheckSafePoint(*joint->mutation, catalog_.safe_point()));
  for (size_t i = 0; i < joint->rows.size() && status.ok(); ++i) {
    const absl::StatusOr<bool> holds = Holds(&joint->rows[i], &reader);
    if (holds.ok() && !*holds) {
      joint->result = JointResult{.failed_row = i};
      return false;
    }
    status = holds.status();
  }
  if (!status.ok()) joint->result = status;
  return status.ok();
}

void RocksStore::ApplyTogether(const JointQueue::Group& group) {
  Joints joints;
  joints.reserve(group.size());
  for (JointQueue::Request* request : group) joints.push_back(static_cast<Joint*>(request));
  // The store may have been stopped since the conditions were evaluated.
  if (absl::Status s = MayWrite(); !s.ok()) {
    for (Joint* joint : joints) joint->result = s;
    return;
  }
  for (Joint* joint : joints) joint->latches->Close();
  const absl::Status written = DrawAndStage(joints) ? WriteStaged() : absl::OkStatus();
  for (Joint* joint : joints) Finish(written, joint);
}

// Returns whether there is something to write. If not, the results say why. REQUIRES: the rows are closed.
bool RocksStore::DrawAndStage(const Joints& joints) {
  for (const Joint* joint : joints) {
    for (const Entry& row : joint->rows) PERCOLATOR_DCHECK(LatchTable::IsClosed(latches_.Count(row.stripe)));
  }
  const absl::StatusOr<Timestamp> first = joints[0]->oracle->GetTimestamps(static_cast<uint32_t>(joints.size()));
  PointReader reader(&pools_);
  for (size_t i = 0; i < joints.size(); ++i) {
    Joint* const joint = joints[i];
    const Timestamp ts(first.ok() ? first->value() + i : 0);
    const absl::Status staged =
        first.ok() ? Stage(absl::MakeSpan(joint->rows), ts, &reader, &joint_batch_) : NoTimestampDrawn(first.status());
    joint->staged = staged.ok();
    joint->result = JointResult{.applied = true, .timestamp = ts};
    if (!staged.ok()) joint->result = staged;
  }
  return joint_batch_.Count() > 0;
}

absl::Status RocksStore::WriteStaged() {
  absl::Status written = Write(&joint_batch_, options_.durability == Durability::kSync);
  if (joint_batch_.GetDataSize() > kKeptBatchBytes) joint_batch_ = rocksdb::WriteBatch();
  joint_batch_.Clear();
  return written;
}

// Opens the rows, unless their contents are unknown.
void RocksStore::Finish(const absl::Status& written, Joint* joint) {
  if (joint->staged && !written.ok()) {
    joint->result = written;
    MutexLock lock(&stop_mutex_);
    for (const Entry& row : joint->rows) rows_closed_.emplace(row.keys.row_prefix());
  } else {
    if (joint->staged) {
      for (Entry& row : joint->rows) UpdateMemory(&row, joint->result->timestamp);
    }
    joint->latches->Open();
  }
  joint->latches->Release();
}

absl::Status RocksStore::WaitUntilOpen(std::string_view row_prefix, uint32_t stripe) {
  if (latches_.WaitUntilOpen(stripe)) return absl::OkStatus();
  MutexLock lock(&stop_mutex_);
  return rows_closed_.contains(row_prefix) ? StaysClosed() : absl::OkStatus();
}

absl::Status RocksStore::WaitUntilOpen(const ScanCursor::Range& range) {
  joints_.WaitForGroup();
  if (!stopped_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(&stop_mutex_);
  const auto first = rows_closed_.lower_bound(range.start_key);
  return first != rows_closed_.end() && *first < range.limit_key ? StaysClosed() : absl::OkStatus();
}

absl::Status RocksStore::StaysClosed() {
  return absl::FailedPreconditionError(
      StrCat("cannot read rows of a transaction whose outcome is unknown: the store in ", dir_,
             " takes no more writes ", StopText()));
}

}  // namespace percolator
