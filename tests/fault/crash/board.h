// State shared by the clients of one life: the jobs to ask about, the failed jobs, the jobs with chunks, the
// submissions to send again, and the number of acknowledged submissions.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "history_rules.h"

namespace jobq::fault {

/// A job, with all fields needed to ask about it.
struct Target {
  std::uint64_t number = 0;
  std::string endpoint;
  std::string id;
  bool asked = false;  ///< asked about in this life before its end
};

/// Thread-safe.
class Board {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Adds an existing job whose end was not seen in this life.
  void add(Target target);
  /// Returns the longest waiting job; blocks until a job comes or the life is over.
  std::optional<Target> next();
  /// Returns the longest waiting job without blocking.
  std::optional<Target> nextNow();
  /// Ends the work on a job returned by next().
  void done();
  std::size_t waiting() const;

  /// Adds a submission of a former life without an answer. The taker calls done() afterwards.
  void addUnanswered(Plan plan);
  std::optional<Plan> extractUnanswered();

  /// Adds a job with chunks. Its taker is the only consumer of the chunks in this life.
  void addStreaming(Target target);
  std::optional<Target> extractStreaming();

  void addFailed(Target target);
  std::optional<Target> extractFailed();

  void countAcknowledged();
  /// Blocks until `count` submissions were acknowledged in this life, or until the deadline.
  void awaitAcknowledged(std::uint64_t count, Deadline deadline);
  /// Blocks until no job waits, no job is being asked about and no submission is left to send again. Returns false if
  /// the deadline came first.
  bool awaitEmpty(Deadline deadline);

  /// Ends the life for all clients.
  void close();
  bool closed() const;

 private:
  std::optional<Target> extract();

  mutable std::mutex mutex_;
  std::condition_variable more_;      ///< for next()
  std::condition_variable progress_;  ///< wakes the only thread that awaits progress
  std::deque<Target> waiting_;
  std::deque<Target> failed_;
  std::deque<Target> streaming_;
  std::deque<Plan> unanswered_;
  std::size_t beingAsked_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool closed_ = false;
};

}  // namespace jobq::fault
