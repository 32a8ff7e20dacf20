// Numbers of jobs by endpoint and state, and of webhooks by endpoint. The numbers of an endpoint are split over slots:
// each writer thread adds to the rows of a separate slot at the end of its transaction, so the threads and nodes do not
// wait for each other. A read sums the slots; the number in a single slot may be negative.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "connection/connection.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "storage_sql/tally.h"

namespace jobq::mysql {

inline constexpr unsigned kCounterSlots = 16;

/// Numbers of an endpoint, or changes of such numbers.
struct Tally : sql::Tally {
  std::int64_t settled = 0;  ///< ended, still listed deliveries

  bool operator==(const Tally&) const = default;
};

/// Changes of the counters by the steps of a transaction. Not thread-safe.
class CounterChanges : public sql::TallyChanges<Tally> {
 public:
  /// Adds `deliveries` to the number of settled deliveries of the endpoint.
  void settled(const EndpointId& endpoint, std::int64_t deliveries) { endpoints_[endpoint].settled += deliveries; }

  /// Adds the changes to the rows of the slot, in the open transaction. Throws MysqlError.
  void persist(Connection& connection, unsigned slot) const;
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
