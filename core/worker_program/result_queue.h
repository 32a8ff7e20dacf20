// The results of a worker that the server does not have yet.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/worker_program/jobs_in_hand.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::worker {

/// The result of a job that waits to be sent.
struct UnsentResult {
  JobPtr job;
  Instant latest{};      ///< time after which the server drops the result
  std::string report;    ///< of resultText()
  bool isAlone = false;  ///< the server has refused the result as a part of a batch
};

/// Handlers add results, and one thread sends them, in any order. Any thread may call.
class ResultQueue {
 public:
  /// Bounds of a batch: the server reads 1,000 reports and 24 MB.
  static constexpr std::size_t kMostAtOnce = 1'000;
  static constexpr std::size_t kBatchBytes = 4UL << 20;
  /// Bytes of waiting results above which handlers wait, too.
  static constexpr std::size_t kMostBytes = 64UL << 20;

  /// Adds a result. Blocks while more than kMostBytes wait.
  void add(UnsentResult result);
  /// Put results back whose call has failed, after the other results, or before them.
  void putBack(std::vector<UnsentResult> results);
  void putFirst(std::vector<UnsentResult> results);

  /// Blocks until there is a result, and removes the first results: at least one, at most `most`, with at most
  /// kBatchBytes together. A result with `isAlone` is removed without other results. Does not wait for further results.
  /// Returns an empty list once no result comes.
  std::vector<UnsentResult> awaitBatch(std::size_t most);

  /// Lets awaitBatch() return an empty list after the last result. No result is added afterwards.
  void endAdding();
  /// Drops all current and later results.
  void abandon();

 private:
  void noteAdded(std::size_t bytes) JOBQ_REQUIRES(mutex_);

  Mutex mutex_;
  Condition resultCame_;
  Condition roomCame_;
  std::deque<UnsentResult> results_ JOBQ_GUARDED_BY(mutex_);
  std::size_t bytes_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool isComplete_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isAbandoned_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq::worker
