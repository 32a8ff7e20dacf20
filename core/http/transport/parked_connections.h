// The connections without a thread, and the moments when their time is over.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/http/transport/connection.h"

namespace jobq {

/// A connection without a thread. Deadlines follow the steady clock, because they concern sockets and not jobs.
struct ParkedConnection {
  using Moment = std::chrono::steady_clock::time_point;

  enum class State {
    idle,            ///< no byte of a head has come
    readingHead,     ///< a part of a head, or of the handshake before the head, has come
    suspended,       ///< a request waits for CallResumer::resume(); has no deadline
    awaitingInput,   ///< a request waits for the rest of its body
    awaitingOutput,  ///< the rest of an answer waits for its client
    lingeringClose   ///< the last answer is sent, and input of the client is dropped
  };

  std::unique_ptr<Connection> connection;
  State state;
  Moment deadline;          ///< Moment::max() means none
  std::size_t dropped = 0;  ///< bytes dropped so far, in the lingering close
};

/// Plain state, without a thread or a lock of its own: one thread at a time. A connection that is taken belongs to the
/// caller, and its budgets return with its end.
class ParkedConnections {
 public:
  using Moment = ParkedConnection::Moment;

  bool empty() const noexcept { return parked_.empty(); }

  /// Returns the number of connections with a request that is not answered in full: those in State::suspended,
  /// State::awaitingInput and State::awaitingOutput.
  std::size_t openRequests() const noexcept;

  /// Returns the earliest deadline, or nullopt without a connection.
  std::optional<Moment> nextDeadline() const noexcept;

  /// Adds a connection that is not parked.
  void add(ParkedConnection parked);

  /// Takes the connection out. Returns nullopt if no connection with the id is parked.
  std::optional<ParkedConnection> extract(std::uint64_t id);
  /// Takes the connection out if it is in State::suspended. Returns nullopt otherwise.
  std::optional<ParkedConnection> extractSuspended(std::uint64_t id);

  /// Takes the connections with a deadline at or before `now`, the earliest first.
  std::vector<ParkedConnection> extractLate(Moment now);

  /// Takes the connections without a request: those in State::idle and State::readingHead.
  std::vector<ParkedConnection> extractUnserved();
  std::vector<ParkedConnection> extractAll();

 private:
  std::unordered_map<std::uint64_t, ParkedConnection> parked_;
  std::set<std::pair<Moment, std::uint64_t>> deadlines_;  // of the connections that have a deadline
};

}  // namespace jobq
