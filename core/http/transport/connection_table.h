// The place of each connection of a reactor. A connection is parked (idle, or with a request that waits), or active: in
// the hands of the reactor thread after its event or deadline, queued for a thread of the HttpThreadPool, or served by
// such a thread or by a thread outside of the pool (ConnectionReactor::continueHere). Only a connection that was just
// accepted is in neither state.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "core/http/transport/connection.h"
#include "core/http/transport/event_poll.h"
#include "core/http/transport/message.h"
#include "core/http/transport/parked_connections.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread, unless a function says otherwise. A connection leaves the active state through park(), suspend(),
/// forget(), a refused beginServing(), or cutServed() for dropped ones.
class ConnectionTable final : public ConnectionPlaces {
 public:
  using Moment = ParkedConnection::Moment;

  /// `poll` outlives the table.
  explicit ConnectionTable(const EventPoll& poll) : poll_(poll) {}

  /// Parks the connection and requests its next event. Closes the connection instead after beginStop(), and after
  /// drain() if no request is open or was answered (State::idle, State::readingHead). The reactor thread may take the
  /// connection before the call returns.
  void park(ParkedConnection parked);

  /// Parks an active connection whose request waits, in State::suspended, and requests the end of its client as the
  /// next event. Returns the connection, still active, if extractSuspended() was called for it since beginServing();
  /// null otherwise. Closes the connection instead after beginStop().
  /// With `watchesClient` false the end of the client is no event.
  [[nodiscard]] std::unique_ptr<Connection> suspend(std::unique_ptr<Connection> connection, bool watchesClient = true);
  /// Takes a suspended connection, which is active from then on. Returns null if the connection is not suspended; an
  /// active one is then returned by its next suspend(), and a thread that stays with its connection wakes.
  std::unique_ptr<Connection> extractSuspended(std::uint64_t id);
  /// Borrows an active connection whose thread stays with it (ThreadStay::borrow). Returns null for any other
  /// connection, and after beginStop().
  Connection* borrow(std::uint64_t id);

  /// Handles an event of the connection: returns the connection if parked, which is active from then on. Requests a
  /// stop on the token of watch() instead if a handler watches the client, and returns nullopt. Reactor thread.
  std::optional<ParkedConnection> extractReady(std::uint64_t id);
  /// Returns the parked connections with a deadline at or before `now`, which are active from then on. Reactor thread.
  std::vector<ParkedConnection> extractLate(Moment now);
  /// Closes parked connections: all after beginStop(), otherwise those without an open or answered request.
  void closeUnserved();

  /// Marks an active connection as served or queued for a thread. `headDeadline` is the latest moment for the handshake
  /// and the first head behind the handshake. Returns false after beginStop(): the connection is forgotten.
  [[nodiscard]] bool beginServing(Connection& connection, Moment headDeadline);
  /// Returns the `headDeadline` of a connection that is served. Throws std::out_of_range if the connection is not
  /// active.
  Moment headDeadline(std::uint64_t id);
  /// Removes an active connection, which the caller closes.
  void forget(std::uint64_t id);

  /// Returns the milliseconds from `now` until the next deadline or until `other`, at most a minute; -1 without any
  /// deadline. A later park() with an earlier deadline wakes the reactor thread. Reactor thread.
  int untilNextDeadline(std::optional<Moment> other, Moment now);

  /// The connection is active; otherwise beginStay() and watch() throw std::out_of_range.
  [[nodiscard]] bool beginStay(Connection& connection) override;
  std::stop_token watch(std::uint64_t connection) override;
  void unwatch(std::uint64_t connection) noexcept override;

  /// Lets no connection wait for a request any more; closeUnserved() closes the parked ones.
  void drain();
  /// Begins no further request and parks no connection.
  void beginStop();
  /// Forgets the connections of `dropped`, and cuts the other ones that are served.
  void cutServed(const std::deque<std::unique_ptr<Connection>>& dropped);

  /// Waits until no connection is parked or active, for `atMost`. Returns false if the time is over.
  bool awaitQuiet(std::chrono::milliseconds atMost);

  /// Returns the number of connections whose request waits for a thread, for an event, or for the rest of its answer.
  std::size_t openRequests();

 private:
  struct Active {
    Connection* connection;
    Moment headDeadline{};
    bool served = false;   // served or queued for a thread; false in the hands of the reactor thread
    bool resumed = false;  // a request to continue came while the connection was active
  };

  bool quiet() const JOBQ_REQUIRES(mutex_) { return active_.empty() && parked_.empty(); }

  const EventPoll& poll_;
  Mutex mutex_;
  Condition becameQuiet_;
  ParkedConnections parked_ JOBQ_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Active> active_ JOBQ_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::stop_source> watched_ JOBQ_GUARDED_BY(mutex_);
  Moment wakesAt_ JOBQ_GUARDED_BY(mutex_){};  // when the reactor thread wakes without an event
  bool draining_ JOBQ_GUARDED_BY(mutex_) = false;
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
