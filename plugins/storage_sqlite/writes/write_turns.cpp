#include "writes/write_turns.h"

#include <algorithm>

namespace jobq::sqlite {
namespace {

/// Time without a write after which a log of some size is moved into the file.
constexpr std::chrono::milliseconds kQuietTime{20};

bool isLarge(const PendingWrite& write) { return write.isAwaited && write.bytes > kSmallWrite; }

}  // namespace

bool WriteTurns::enter(PendingWrite& write) {
  Lock lock(mutex_);
  const bool mayBeLone = write.isAwaited && write.bytes <= kLoneWrite && loneTurns_ >= kLoneTurns;
  if (mayBeLone && !isTaken_ && !hasTask()) return isTaken_ = true;
  (isLarge(write) ? large_ : small_).push(write);
  // A thread with the turn looks for further writes at the end of the turn.
  const bool wakes = !isTaken_;
  lock.unlock();
  if (wakes) changed_.notifyOne();
  return false;
}

void WriteTurns::leave(const Turn& turn, bool isCommitted) {
  Lock lock(mutex_);
  isTaken_ = false;
  lastEnd_ = Moment::clock::now();
  lastIsLarge_ = turn.isLarge;
  if (isCommitted) isCheckpointDue_ = wal_.isDue();
  if (turn.task == Task::write) {
    const bool isLone = turn.isLone && small_.isEmpty() && large_.isEmpty();
    loneTurns_ = isLone ? std::min(loneTurns_ + 1, kLoneTurns) : 0;
  }
  // The writer's thread may have to wake earlier now.
  const bool wakes = hasTask() || stopping_ || quietTaskAt() < wakesAt_;
  lock.unlock();
  if (wakes) changed_.notifyOne();
}

WriteTurns::Turn WriteTurns::next() {
  Lock lock(mutex_);
  Turn turn{awaitTask()};
  if (turn.task == Task::end) return turn;
  isTaken_ = true;
  if (turn.task == Task::write) {
    turn.group = nextGroup();
    turn.isLarge = isLarge(*turn.group);
    turn.isLone = turn.group->next == nullptr;
  } else if (turn.task == Task::checkpoint) {
    largeIsNext_ = isCheckpointDue_ = false;
  } else {
    isLastSync_ = stopping_;
  }
  return turn;
}

void WriteTurns::stop() {
  Lock lock(mutex_);
  stopping_ = true;
  changed_.notifyOne();
}

std::size_t WriteTurns::queued() {
  Lock lock(mutex_);
  return small_.size() + large_.size();
}

bool WriteTurns::hasTask() const { return isCheckpointDue_ || !small_.isEmpty() || !large_.isEmpty(); }

// Returns when the writer's thread has to work although no write comes: for the sync of unsynced jobs, or for a
// checkpoint.
WriteTurns::Moment WriteTurns::quietTaskAt() const {
  if (const auto since = unsynced_.since()) return *since + kUnsyncedLife;
  return wal_.isWorthMoving() ? lastEnd_ + kQuietTime : Moment::max();
}

// Returns the next task of the writer's thread. No thread has the turn then.
WriteTurns::Task WriteTurns::awaitTask() {
  for (;;) {
    wakesAt_ = Moment::max();
    if (!isTaken_) {
      // Small writes go first after a large group, and again after a checkpoint: none of them waits for both.
      if (isCheckpointDue_ && (!lastIsLarge_ || small_.isEmpty())) return Task::checkpoint;
      if (hasTask()) return Task::write;
      const bool isUnsynced = unsynced_.since().has_value();
      if (stopping_) return isUnsynced && !isLastSync_ ? Task::sync : Task::end;
      wakesAt_ = quietTaskAt();
      if (wakesAt_ <= Moment::clock::now()) return isUnsynced ? Task::sync : Task::checkpoint;
    }
    if (wakesAt_ == Moment::max()) {
      changed_.wait(mutex_);
    } else {
      changed_.waitFor(mutex_, wakesAt_ - Moment::clock::now());
    }
  }
}

PendingWrite* WriteTurns::nextGroup() {
  const bool takesLarge = small_.isEmpty() || (largeIsNext_ && !large_.isEmpty());
  largeIsNext_ = !takesLarge;
  return takesLarge ? large_.pop(kLargeGroupBytes) : small_.pop(kGroupBytes);
}

}  // namespace jobq::sqlite
