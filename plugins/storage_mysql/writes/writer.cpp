#include "writes/writer.h"

#include <pthread.h>

#include <algorithm>
#include <random>

namespace jobq::mysql {
namespace {

/// Bounds of a group, in writes and further jobs of writes, and in bytes. After a deadlock the whole group is repeated,
/// and the locks are held until the commit.
constexpr std::size_t kMostTogether = 64;
constexpr std::size_t kGroupBytes = 4UL << 20;

/// Time for which writes gather during another group.
constexpr std::chrono::milliseconds kLongestGathering{20};

/// Conflicts after which a group is given up: its writes are then committed one by one. A single write is bounded by
/// kLongestRepetition only.
constexpr unsigned kGroupConflicts = 3;
constexpr unsigned kAnyConflicts = 1'000'000;

/// Time after which an unused connection is opened again: the server closes it after a minute, and the loss of a
/// connection for changes would end the generation of all connections.
constexpr std::chrono::seconds kLongestRest{45};

/// Time for which a transaction is repeated after conflicts with others.
constexpr std::chrono::seconds kLongestRepetition{10};

std::minstd_rand& generator() {
  static thread_local std::minstd_rand random(std::random_device{}());
  return random;
}

void pauseAfter(unsigned attempt) {
  const unsigned most = std::min(2'000U << std::min(attempt, 5U), 50'000U);
  std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<unsigned>(0, most)(generator())));
}

}  // namespace

/// Decides whether a failed transaction is repeated.
class Writer::Repetition {
 public:
  explicit Repetition(bool isGroup) : mostConflicts_(isGroup ? kGroupConflicts : kAnyConflicts) {}

  /// Waits before the repetition and returns true, or returns false if a repetition does not help.
  bool allows(const MysqlError& error, bool committing) {
    const bool isFirstLoss = error.isLost() && !committing && !std::exchange(wasLost_, true);
    if (!error.isConflict() && !isFirstLoss) return false;
    if (std::chrono::steady_clock::now() >= until_ || conflicts_ == mostConflicts_) return false;
    if (!isFirstLoss) pauseAfter(conflicts_++);
    return true;
  }

 private:
  const std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::now() + kLongestRepetition;
  bool wasLost_ = false;
  const unsigned mostConflicts_;
  unsigned conflicts_ = 0;
};

Writer::Writer(const Deps& deps, std::size_t threads) : deps_(deps), workers_(threads) {
  const unsigned slot = std::uniform_int_distribution<unsigned>(0, kCounterSlots - 1)(generator());
  for (std::size_t i = 0; i < threads; ++i) {
    Worker& worker = workers_[i];
    worker.slot = (slot + static_cast<unsigned>(i)) % kCounterSlots;
    worker.thread = std::thread([this, &worker] { run(worker); });
    pthread_setname_np(worker.thread.native_handle(), "mysql-writer");
  }
}

Writer::~Writer() {
  {
    Lock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notifyAll();
  for (Worker& worker : workers_) worker.thread.join();
}

void Writer::submit(Write& write) {
  {
    Lock lock(mutex_);
    (first_ == nullptr ? first_ : last_->next) = &write;
    last_ = &write;
  }
  arrived_.notifyOne();
  write.awaitDone();
  if (write.error) std::rethrow_exception(std::exchange(write.error, nullptr));
  if (write.lostWith && write.isUnknown) throw OutcomeUnknown(*write.lostWith);
  if (write.lostWith) throw StorageError(*write.lostWith);
}

void Writer::Write::awaitDone() {
  Lock lock(mutex_);
  while (!done_) finished_.wait(mutex_);
}

// Holds the mutex to the end: the waiter owns this object, and continues as soon as the mutex is free.
void Writer::Write::markDone() {
  Lock lock(mutex_);
  done_ = true;
  finished_.notifyOne();
}

void Writer::run(Worker& worker) {
  while (Write* group = awaitGroup()) {
    commitGroup(worker, group);
    ++deps_.commits;
    {
      Lock lock(mutex_);
      --underWay_;
      ended_.notifyOne();
    }
    while (group != nullptr) std::exchange(group, group->next)->markDone();
  }
}

std::size_t Writer::countOf(const Write& write) { return 1 + write.extent.furtherJobs.size(); }

Writer::Write* Writer::awaitGroup() {
  Lock lock(mutex_);
  for (;;) {
    while (first_ == nullptr && !stopping_) arrived_.wait(mutex_);
    if (first_ == nullptr) return nullptr;
    const auto until = std::chrono::steady_clock::now() + kLongestGathering;
    for (auto now = until - kLongestGathering; underWay_ > 0 && now < until; now = std::chrono::steady_clock::now()) {
      ended_.waitFor(mutex_, until - now);
    }
    if (first_ != nullptr) break;  // otherwise another thread was faster
  }
  ++underWay_;
  Write* last = first_;
  std::size_t bytes = last->extent.bytes;
  std::size_t jobs = countOf(*last);
  for (; last->next != nullptr; last = last->next) {
    bytes += last->next->extent.bytes;
    jobs += countOf(*last->next);
    if (jobs > kMostTogether || bytes > kGroupBytes) break;
  }
  Write* const rest = std::exchange(last->next, nullptr);
  Write* const group = std::exchange(first_, rest);
  if (first_ != nullptr) arrived_.notifyOne();
  return group;
}

void Writer::commitGroup(Worker& worker, Write* group) {
  if (group->next == nullptr) return commitAlone(worker, *group);
  std::optional<std::string> lostWith;
  bool isUnknown = false;
  try {
    return commit(worker, group);
  } catch (const OutcomeUnknown& error) {
    lostWith = error.what();
    isUnknown = true;
  } catch (const MysqlError& error) {
    if (error.isLost()) lostWith = error.what();
  } catch (...) {  // NOLINT: the failing write fails again alone
  }
  for (Write* write = group; write != nullptr; write = write->next) {
    write->lostWith = lostWith;
    write->isUnknown = isUnknown;
  }
  if (lostWith) return;
  for (Write* write = group; write != nullptr;) {
    Write* const rest = std::exchange(write->next, nullptr);
    commitAlone(worker, *write);
    write->next = rest;
    write = rest;
  }
}

void Writer::commitAlone(Worker& worker, Write& write) {
  try {
    commit(worker, &write);
  } catch (...) {
    write.error = std::current_exception();
  }
}

void Writer::commit(Worker& worker, Write* group) {
  Repetition repetition(group->next != nullptr);
  for (;;) {
    bool committing = false;
    const auto begunAt = std::chrono::steady_clock::now();
    try {
      applyAll(worker, group);
      committing = true;
      worker.connection->commit();
      worker.usedAt = std::chrono::steady_clock::now();
      return;
    } catch (const MysqlError& error) {
      if (error.isLost()) {
        drop(worker, error, begunAt);
      } else {
        rollBack(worker);
      }
      if (repetition.allows(error, committing)) continue;
      if (committing && !error.isConflict()) {
        throw OutcomeUnknown(std::string("the answer to a commit is unknown: ") + error.what() + "; repeat the call");
      }
      throw;
    } catch (...) {
      rollBack(worker);
      throw;
    }
  }
}

void Writer::connect(Worker& worker) const {
  const auto now = std::chrono::steady_clock::now();
  const bool isGood =
      worker.connection && deps_.connector.isCurrent(*worker.connection) && now - worker.usedAt < kLongestRest;
  if (isGood) return;
  worker.connection.reset();
  worker.connection = deps_.connector.open(Isolation::readCommitted);
  worker.usedAt = now;
}

void Writer::applyAll(Worker& worker, Write* group) {
  connect(worker);
  Connection& connection = *worker.connection;
  deps_.clock.measureWhenDue(connection);
  CounterChanges changes;
  LockedRows locked;
  std::int64_t rowsLeft = kMostRowsRemoved;
  connection.begin();
  if (group->next != nullptr || !group->extent.furtherJobs.empty()) locked.lock(connection, jobsOf(group));
  for (const bool isFirst : {true, false}) {
    for (Write* write = group; write != nullptr; write = write->next) {
      if (write->extent.job.empty() == isFirst) continue;
      Step step{connection, deps_.clock.now(), changes, locked, deps_.numbers, deps_.receivers, rowsLeft};
      write->apply(step);
    }
  }
  changes.persist(connection, worker.slot);
  connection.send();
}

std::vector<std::string_view> Writer::jobsOf(const Write* group) {
  std::vector<std::string_view> jobs;
  for (; group != nullptr; group = group->next) {
    if (!group->extent.job.empty()) jobs.push_back(group->extent.job);
    jobs.insert(jobs.end(), group->extent.furtherJobs.begin(), group->extent.furtherJobs.end());
  }
  return jobs;
}

// The death of a connection for changes may be the begin of a switch, and ends the generation. A wait longer than the
// time for one answer is not such a sign: the server holds a lock, or is slow, and goes on to answer reads.
void Writer::drop(Worker& worker, const MysqlError& error, std::chrono::steady_clock::time_point begunAt) const {
  const bool mayBeLate = std::chrono::steady_clock::now() - begunAt >= deps_.connector.answerTime();
  const bool mayBeSwitch = error.isOfReplica() || (error.isOfPeer() && !mayBeLate);
  if (worker.connection && mayBeSwitch) deps_.connector.leave(*worker.connection);
  worker.connection.reset();
}

void Writer::rollBack(Worker& worker) {
  if (!worker.connection) return;
  worker.connection->discard();
  try {
    worker.connection->execute("ROLLBACK");
  } catch (const MysqlError&) {
    worker.connection.reset();
  }
}

}  // namespace jobq::mysql
