#include "core/http/transport/connection_table.h"

#include <algorithm>
#include <utility>

namespace jobq {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kReadable = EPOLLIN | EPOLLRDHUP;
// A half close must not end the wait for a client that still reads.
constexpr std::uint32_t kWritable = EPOLLOUT;
constexpr std::int64_t kLongestSleep = 60'000;  // milliseconds

}  // namespace

void ConnectionTable::park(ParkedConnection parked) {
  bool sooner = false;
  {
    Lock lock(mutex_);
    active_.erase(parked.connection->id());
    const bool isUnserved =
        parked.state == ParkedConnection::State::idle || parked.state == ParkedConnection::State::readingHead;
    const bool welcome = !stopping_ && (!draining_ || !isUnserved);
    if (welcome) {
      sooner = parked.deadline < wakesAt_;
      const Connection& connection = *parked.connection;
      const bool writes = parked.state == ParkedConnection::State::awaitingOutput;
      parked_.add(std::move(parked));
      // Armed under the lock: without the lock the reactor thread could close the connection first.
      poll_.arm(connection, writes ? kWritable : kReadable);
    } else if (quiet()) {
      becameQuiet_.notifyAll();
    }
  }
  if (sooner) poll_.wake();
}

std::unique_ptr<Connection> ConnectionTable::suspend(std::unique_ptr<Connection> connection, bool watchesClient) {
  Lock lock(mutex_);
  const auto active = active_.find(connection->id());
  if (!stopping_ && std::exchange(active->second.resumed, false)) return connection;
  active_.erase(active);
  if (!stopping_) {
    const Connection& parked = *connection;
    parked_.add({std::move(connection), ParkedConnection::State::suspended, Moment::max()});
    // Armed under the lock: without the lock a thread could take and close the connection first.
    if (watchesClient) poll_.arm(parked, EPOLLRDHUP);
  } else if (quiet()) {
    becameQuiet_.notifyAll();
  }
  return nullptr;
}

std::unique_ptr<Connection> ConnectionTable::extractSuspended(std::uint64_t id) {
  Lock lock(mutex_);
  if (const auto active = active_.find(id); active != active_.end()) {
    active->second.resumed = true;
    active->second.connection->threadStay().wake();
    return nullptr;
  }
  auto parked = parked_.extractSuspended(id);
  if (!parked) return nullptr;
  active_.emplace(id, Active{parked->connection.get()});
  return std::move(parked->connection);
}

Connection* ConnectionTable::borrow(std::uint64_t id) {
  Lock lock(mutex_);
  const auto active = active_.find(id);
  if (stopping_ || active == active_.end() || !active->second.connection->threadStay().borrow()) return nullptr;
  return active->second.connection;
}

bool ConnectionTable::beginStay(Connection& connection) {
  Lock lock(mutex_);
  if (std::exchange(active_.at(connection.id()).resumed, false)) return false;
  connection.threadStay().begin();
  return true;
}

std::optional<ParkedConnection> ConnectionTable::extractReady(std::uint64_t id) {
  std::stop_source gone{std::nostopstate};
  std::optional<ParkedConnection> parked;
  {
    Lock lock(mutex_);
    if (const auto watched = watched_.find(id); watched != watched_.end()) {
      gone = watched->second;
    } else {
      parked = parked_.extract(id);
      if (parked) active_.emplace(id, Active{parked->connection.get()});
    }
  }
  // Called without the lock, because a waiting caller wakes inside this call.
  gone.request_stop();
  return parked;
}

std::vector<ParkedConnection> ConnectionTable::extractLate(Moment now) {
  Lock lock(mutex_);
  std::vector<ParkedConnection> late = parked_.extractLate(now);
  for (const ParkedConnection& parked : late) {
    active_.emplace(parked.connection->id(), Active{parked.connection.get()});
    // A late event of the former request would look like the end of a client that is suspended meanwhile.
    poll_.arm(*parked.connection, 0);
  }
  return late;
}

void ConnectionTable::closeUnserved() {
  std::vector<ParkedConnection> going;  // destroyed after the lock
  Lock lock(mutex_);
  going = stopping_ ? parked_.extractAll() : parked_.extractUnserved();
  if (quiet()) becameQuiet_.notifyAll();
}

bool ConnectionTable::beginServing(Connection& connection, Moment headDeadline) {
  Lock lock(mutex_);
  if (!stopping_) {
    active_.insert_or_assign(connection.id(), Active{&connection, headDeadline, true});
    return true;
  }
  active_.erase(connection.id());
  if (quiet()) becameQuiet_.notifyAll();
  return false;
}

ConnectionTable::Moment ConnectionTable::headDeadline(std::uint64_t id) {
  Lock lock(mutex_);
  return active_.at(id).headDeadline;
}

void ConnectionTable::forget(std::uint64_t id) {
  Lock lock(mutex_);
  active_.erase(id);
  if (quiet()) becameQuiet_.notifyAll();
}

int ConnectionTable::untilNextDeadline(std::optional<Moment> other, Moment now) {
  Lock lock(mutex_);
  wakesAt_ = std::min(parked_.nextDeadline().value_or(Moment::max()), other.value_or(Moment::max()));
  if (wakesAt_ == Moment::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(wakesAt_ - now);
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLongestSleep));
}

std::stop_token ConnectionTable::watch(std::uint64_t connection) {
  Lock lock(mutex_);
  const std::stop_token token = watched_[connection].get_token();
  poll_.arm(*active_.at(connection).connection, EPOLLRDHUP);
  return token;
}

void ConnectionTable::unwatch(std::uint64_t connection) noexcept {
  Lock lock(mutex_);
  watched_.erase(connection);
  const auto active = active_.find(connection);
  // epoll cannot be asked for no events at all; a broken connection is reported at most once more.
  if (active != active_.end()) poll_.arm(*active->second.connection, 0);
}

void ConnectionTable::drain() {
  Lock lock(mutex_);
  draining_ = true;
}

void ConnectionTable::beginStop() {
  Lock lock(mutex_);
  stopping_ = true;
}

void ConnectionTable::cutServed(const std::deque<std::unique_ptr<Connection>>& dropped) {
  Lock lock(mutex_);
  for (const auto& connection : dropped) active_.erase(connection->id());
  for (const auto& [id, active] : active_) {
    if (active.served) active.connection->stream().shutDown();
  }
}

bool ConnectionTable::awaitQuiet(milliseconds atMost) {
  const auto end = std::chrono::steady_clock::now() + atMost;
  Lock lock(mutex_);
  while (!quiet()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    becameQuiet_.waitFor(mutex_, end - now);
  }
  return true;
}

std::size_t ConnectionTable::openRequests() {
  Lock lock(mutex_);
  const auto served =
      std::count_if(active_.begin(), active_.end(), [](const auto& each) { return each.second.served; });
  return static_cast<std::size_t>(served) + parked_.openRequests();
}

}  // namespace jobq
