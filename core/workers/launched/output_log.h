// The newest lines that launched workers have written, for readers of
// `GET /v1/endpoints/{id}/workers/{worker}/logs`. The lines are in memory only and end with the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/endpoints/output_reader.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// The logs of all workers. Any thread.
class OutputLog final : public OutputReader {
 public:
  static constexpr std::size_t kMostEnded = 64;  ///< ended workers whose lines are kept
  static constexpr Millis kKeptAfterEnd{600'000};

  /// Begins an empty log.
  void beginWorker(const EndpointId& endpoint, const WorkerId& worker) JOBQ_EXCLUDES(mutex_);
  /// Adds output. Line ends are LF and CR, as progress bars write CR; empty lines are left out. The part after the last
  /// line end waits for the rest of its line. An unknown worker is ignored.
  void addOutput(const WorkerId& worker, std::string_view bytes, Instant now) JOBQ_EXCLUDES(mutex_);
  /// Ends a log with a clause. Of more than kMostEnded ended workers the oldest logs are removed.
  void endWorker(const WorkerId& worker, std::string reason, Instant now) JOBQ_EXCLUDES(mutex_);
  /// Removes the logs of workers that ended kKeptAfterEnd before.
  void removeOldLogs(Instant now) JOBQ_EXCLUDES(mutex_);

  std::optional<OutputPart> readAfter(const EndpointId& endpoint, const WorkerId& worker, std::uint64_t after,
                                      std::size_t most) const override JOBQ_EXCLUDES(mutex_);
  std::uint64_t startOfTail(const WorkerId& worker, std::size_t count) const override JOBQ_EXCLUDES(mutex_);

 private:
  struct Log {
    EndpointId endpoint;
    std::deque<OutputLine> lines;
    std::size_t bytes = 0;  // of the lines
    std::string rest;       // the begun line
    std::uint64_t lastNumber = 0;
    std::optional<std::string> reason;
    Instant endedAt{};
  };

  static void addLine(Log& log, std::string text, Instant now);
  void removeSurplus() JOBQ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<WorkerId, Log> logs_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
