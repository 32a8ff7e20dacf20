// How long workers of each template ran (`runtimeInMin`): counted here, and added up over nodes and restarts in a
// record of its own, so that a clock that ticks is no change of the template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "jobq/mutex.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread asks; one ticks. What a node has counted and not stored yet, at most a minute a template, ends with it.
class RuntimeMeter {
 public:
  RuntimeMeter(RecordStore& records, Clock& clock) : records_(records), clock_(clock) {}

  /// Since the last tick, so many workers of each template were there. StorageError passes through: then what was
  /// counted is stored by a later one.
  void tick(const std::map<std::string, std::size_t>& workersOfTemplate);

  /// Whole minutes of work, all workers and nodes together.
  std::int64_t minutes(const std::string& templateId) const;

 private:
  struct Count {
    Millis stored{0};   // as this node knows it
    Millis pending{0};  // counted here since
  };

  void store(const std::string& templateId, Millis amount);
  void load();

  RecordStore& records_;
  Clock& clock_;
  Instant last_ = Instant::min();  // of who ticks
  mutable Mutex mutex_;
  std::map<std::string, Count> counts_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
