// The working time of the workers of each template (`runtimeInMin`). Each node counts in memory and adds the count to a
// separate kind of record, so that counting does not change the template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "jobq/mutex.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread may call minutes(); one thread calls tick(). A crash loses the time that a node has counted and not
/// stored, at most a minute for each template.
class RuntimeMeter {
 public:
  /// `records` and `clock` outlive the meter.
  RuntimeMeter(RecordStore& records, Clock& clock) : records_(records), clock_(clock) {}

  /// Adds the time since the last tick for the given number of workers of each template. Throws StorageError; a later
  /// tick then stores the counted time.
  void tick(const std::map<std::string, std::size_t>& workersOfTemplate);

  /// Returns whole minutes of work, summed over all workers and nodes.
  std::int64_t minutes(const std::string& templateId) const;

 private:
  struct Count {
    Millis stored{0};   // stored by all nodes, as last read
    Millis pending{0};  // counted here and not stored yet
  };

  void store(const std::string& templateId, Millis amount);
  void load();

  RecordStore& records_;
  Clock& clock_;
  Instant last_ = Instant::min();  // only for the thread that ticks
  mutable Mutex mutex_;
  std::map<std::string, Count> counts_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
