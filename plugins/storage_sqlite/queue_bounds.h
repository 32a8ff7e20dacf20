// How far an endpoint's line is counted: the place behind which a job only hears that many jobs are ahead of it.
// Answers about jobs deep in the line share that place for a second, because counting up to it is most of what they
// cost.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// Where a waiting job stands among those of its endpoint, whatever the queue policy: the columns that claims go by.
struct QueuePlace {
  std::int64_t low = 0;
  std::int64_t rank = 0;
  std::int64_t arrival = 0;
  auto operator<=>(const QueuePlace&) const = default;
};

/// A line as it was at one moment.
struct QueueBound {
  Instant asOf{};
  std::size_t most = 0;             ///< how many jobs are counted
  std::optional<QueuePlace> place;  ///< of the waiting job with that number; nothing when fewer wait
};

/// The bounds of all lines. Any thread.
class QueueBounds {
 public:
  /// Returns the endpoint's bound for `most` when it is less than a second old.
  std::optional<QueueBound> find(std::string_view endpoint, std::size_t most, Instant now) const;
  void remember(std::string_view endpoint, const QueueBound& bound);

 private:
  mutable Mutex mutex_;
  std::map<EndpointId, QueueBound, std::less<>> bounds_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
