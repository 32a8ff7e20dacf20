// Numbers of jobs by endpoint and state, and of webhooks by endpoint. The numbers of an endpoint are split over slots:
// each writer thread adds to the rows of a separate slot at the end of its transaction, so the threads and nodes do not
// wait for each other. A read sums the slots; the number in a single slot may be negative.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"

namespace jobq::mysql {

inline constexpr std::size_t kStates = 6;
inline constexpr unsigned kCounterSlots = 16;

/// Numbers of an endpoint, or changes of such numbers.
struct Tally {
  std::array<std::int64_t, kStates> jobs{};  ///< by JobState; expired jobs count until removed by a sweep
  std::int64_t queuedLow = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t retried = 0;
  std::int64_t owed = 0;     ///< webhooks; an owed webhook outlives the job and the endpoint
  std::int64_t settled = 0;  ///< ended, still listed deliveries

  bool operator==(const Tally&) const = default;
};

/// Changes of the counters by the steps of a transaction. Not thread-safe.
class CounterChanges {
 public:
  /// Counts a new job in the queue.
  void added(const EndpointId& endpoint, bool low) { place(endpoint, JobState::inQueue, low, 1); }
  /// Counts `jobs` deleted jobs whose state was `from`.
  void gone(const EndpointId& endpoint, JobState from, bool low, std::int64_t jobs = 1) {
    place(endpoint, from, low, -jobs);
  }
  /// Counts a change of a job's state, except its end.
  void moved(const EndpointId& endpoint, JobState from, JobState to, bool low);
  /// Counts the end of a job, with the outcome as completed or failed. A cancelled job counts as neither.
  void ended(const EndpointId& endpoint, JobState from, JobState to, bool low);
  /// Counts a retry by a caller or the loss of a worker.
  void retried(const EndpointId& endpoint) { ++endpoints_[endpoint].retried; }
  /// Adds `webhooks` to the number of webhooks owed by the endpoint; a negative value lowers the number.
  void owes(const EndpointId& endpoint, std::int64_t webhooks) { endpoints_[endpoint].owed += webhooks; }
  /// Adds `deliveries` to the number of settled deliveries of the endpoint.
  void settled(const EndpointId& endpoint, std::int64_t deliveries) { endpoints_[endpoint].settled += deliveries; }
  /// Returns the changes of the endpoint so far.
  Tally of(std::string_view endpoint) const;

  /// Adds the changes to the rows of the slot, in the open transaction. Throws MysqlError.
  void persist(Connection& connection, unsigned slot) const;

 private:
  void place(const EndpointId& endpoint, JobState state, bool low, std::int64_t jobs);

  std::map<EndpointId, Tally, std::less<>> endpoints_;  // sorted: all transactions lock the rows in one order
};

/// Returns the committed numbers of the endpoint, with the changes of the open transaction if already written.
Tally readTally(Connection& connection, std::string_view endpoint);

/// Returns the committed numbers of each endpoint.
std::map<EndpointId, Tally> readTallies(Connection& connection);

/// Returns the endpoints with a queued job; an expired job counts until a sweep frees the job.
std::vector<QueuedEndpoint> endpointsWithQueue(Connection& connection);

/// Returns the endpoints that owe webhooks, in ascending order.
std::vector<EndpointId> endpointsOwing(Connection& connection);

/// Sets the totals of an endpoint under deletion to 0. The webhooks stay counted.
void forgetTotals(Connection& connection, std::string_view endpoint);

}  // namespace jobq::mysql
