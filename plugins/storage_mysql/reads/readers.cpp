#include "reads/readers.h"

#include <chrono>

namespace jobq::mysql {
namespace {

constexpr std::chrono::seconds kLongestWait{10};

}  // namespace

std::unique_ptr<Connection> Readers::awaitPlace() {
  Lock lock(mutex_);
  if (free_ > 0) {
    --free_;
  } else {
    Waiter self;
    const auto place = waiters_.insert(waiters_.end(), &self);
    const auto until = std::chrono::steady_clock::now() + kLongestWait;
    for (auto now = until - kLongestWait; !self.isCalled && now < until; now = std::chrono::steady_clock::now()) {
      self.called.waitFor(mutex_, until - now);
    }
    if (!self.isCalled) {
      waiters_.erase(place);
      throw StorageError(
          "all connections to the database were in use for ten seconds; raise storage.mysql.pool, or "
          "look for slow statements in the database");
    }
  }
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void Readers::releasePlace(std::unique_ptr<Connection> connection) {
  Lock lock(mutex_);
  if (connection) idle_.push_back(std::move(connection));
  if (waiters_.empty()) {
    ++free_;
    return;
  }
  Waiter& next = *waiters_.front();
  waiters_.pop_front();
  next.isCalled = true;
  next.called.notifyOne();
}

// A connection that dies here shows at its next use.
Snapshot::~Snapshot() {
  try {
    connection_.execute("COMMIT");
  } catch (const MysqlError&) {  // NOLINT: see above
  }
}

}  // namespace jobq::mysql
