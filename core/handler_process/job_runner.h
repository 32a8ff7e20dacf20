// The interface between a handler thread of jobq-worker and the place where the handler runs: the thread
// (core/handler_process/handler_thread.h) or a separate process (core/handler_process/handler_process.h).
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/time.h"

namespace jobq::worker {

/// Time for a handler to notice the stop of its job.
inline constexpr Millis kStopGrace{5'000};

/// The handler of a handler thread. The thread makes, uses and deletes the object.
class JobRunner {
 public:
  virtual ~JobRunner() = default;

  /// Blocks until the handler is ready for a job. Returns false if `end` came first. Throws any std::exception if the
  /// handler cannot be made.
  virtual bool prepare(const std::stop_token& end) = 0;

  /// Runs a job after a prepare() that has returned true. Returns no value if the handler has died in the run, for a
  /// reason outside of the job; prepare() makes a new handler then.
  virtual std::optional<Outcome> run(std::string_view input, JobContext& context) = 0;
};

/// Makes the runners of all handler threads. Any thread.
class JobRunners {
 public:
  virtual ~JobRunners() = default;
  /// Returns a runner for the calling thread. The object outlives the runner.
  virtual std::unique_ptr<JobRunner> make() = 0;
};

}  // namespace jobq::worker
