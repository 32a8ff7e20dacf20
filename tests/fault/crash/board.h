// What the clients of one life tell each other: which jobs are to be asked about, which have failed or hand out chunks,
// which submissions are to be sent again, and how many were acknowledged.
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

/// A job, as those who ask about it have to name it.
struct Target {
  std::uint64_t number = 0;
  std::string endpoint;
  std::string id;
  bool asked = false;  ///< in this life, and it had not ended
};

/// Any thread.
class Board {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// A job that exists and whose end was not seen in this life.
  void add(Target target);
  /// Takes the job that waits longest; waits for one until the life is over.
  std::optional<Target> next();
  /// The same, but without waiting.
  std::optional<Target> nextNow();
  /// A job that next() gave has been asked about to the end.
  void done();
  std::size_t waiting() const;

  /// A submission of a former life that was not answered. Whoever takes it says done().
  void addUnanswered(Plan plan);
  std::optional<Plan> takeUnanswered();

  /// A job with chunks; nobody else consumes them in this life.
  void addStreaming(Target target);
  std::optional<Target> takeStreaming();

  void addFailed(Target target);
  std::optional<Target> takeFailed();

  void countAcknowledged();
  /// Until so many submissions were acknowledged in this life, or the deadline.
  void awaitAcknowledged(std::uint64_t count, Deadline deadline);
  /// Until nobody waits, nobody is being asked about and nothing is to be sent again. False: the deadline came first.
  bool awaitEmpty(Deadline deadline);

  /// Everybody goes home.
  void close();
  bool closed() const;

 private:
  std::optional<Target> take();

  mutable std::mutex mutex_;
  std::condition_variable more_;      ///< for next()
  std::condition_variable progress_;  ///< for the one thread that awaits something
  std::deque<Target> waiting_;
  std::deque<Target> failed_;
  std::deque<Target> streaming_;
  std::deque<Plan> unanswered_;
  std::size_t beingAsked_ = 0;
  std::uint64_t acknowledged_ = 0;
  bool closed_ = false;
};

}  // namespace jobq::fault
