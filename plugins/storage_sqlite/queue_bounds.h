// The ends of the counted parts of the queues. A job behind the place is answered with the number of counted jobs
// alone. Answers about jobs deep in a queue share the place for a second, because counting up to the place is most of
// the cost.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "storage_sql/leases.h"

namespace jobq::sqlite {

/// The end of the counted part of a queue at some moment.
struct QueueBound {
  Instant asOf{};
  std::size_t most = 0;                  ///< how many jobs are counted
  std::optional<sql::QueuePlace> place;  ///< the queued job number `most`; empty when fewer jobs are queued
};

/// The bounds of all queues. Any thread may call the methods.
class QueueBounds {
 public:
  /// Returns the endpoint's bound for `most` counted jobs if the bound is less than a second old.
  std::optional<QueueBound> find(std::string_view endpoint, std::size_t most, Instant now) const;
  /// Replaces the bound of the endpoint.
  void remember(std::string_view endpoint, const QueueBound& bound);

 private:
  mutable Mutex mutex_;
  std::map<EndpointId, QueueBound, std::less<>> bounds_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
