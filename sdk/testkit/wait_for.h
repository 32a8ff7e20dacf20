// Bounded waits for tests. A test names the condition of each wait. After the deadline the name is printed and the test
// fails instead of hanging. The deadline bounds a hang and never judges speed.
//
//     waitFor("the worker to be idle", [&] { return worker.isIdle(); });         // polls
//     EXPECT_EQ(resultOf("the caller's answer", answer), 200);                   // a future
//     joinAll("the writers", writers);                                           // threads
//     for (WaitDeadline wait("the first call"); calls_ == 0;) wait.on(changed_, mutex_);
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "jobq/mutex.h"

namespace jobq::testkit {

/// Deadline of a wait. A machine with all processors busy with other work still meets this deadline.
inline constexpr std::chrono::seconds kHangDeadline{60};
/// Deadline for threads with work of their own; a sanitizer makes such work ten times as long.
inline constexpr std::chrono::seconds kWorkDeadline{300};

/// Thrown by a wait past its deadline. The text names the condition of the wait.
class WaitExpired : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The deadline of one wait. Owned and used by one thread.
class WaitDeadline {
 public:
  /// `what` completes the sentence "waited 60 s for ...".
  explicit WaitDeadline(std::string_view what, std::chrono::seconds within = kHangDeadline)
      : what_(what), within_(within), end_(std::chrono::steady_clock::now() + within) {}

  /// Waits for a notification of `condition`, in the body of a while loop, because a wait may return without a
  /// notification. Throws WaitExpired past the deadline.
  void on(Condition& condition, Mutex& mutex) JOBQ_REQUIRES(mutex) {
    if (isOver()) expire();
    condition.waitFor(mutex, end_ - std::chrono::steady_clock::now());
  }

  /// Sleeps one millisecond between two checks of a condition. Throws WaitExpired past the deadline.
  void pause() const {
    if (isOver()) expire();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  bool isOver() const { return std::chrono::steady_clock::now() >= end_; }

  /// Prints the condition of the wait and `seen`, then throws WaitExpired. The text is printed too because the
  /// exception may never reach the test: stack unwinding may join a hanging thread.
  [[noreturn]] void expire(const std::string& seen = "") const {
    const std::string message = describeExpiry(what_, within_) + (seen.empty() ? "" : ": " + seen);
    std::fprintf(stderr, "%s\n", message.c_str());
    throw WaitExpired(message);
  }

  static std::string describeExpiry(const std::string& what, std::chrono::seconds within) {
    return "waited " + std::to_string(within.count()) + " s for " + what;
  }

 private:
  const std::string what_;
  const std::chrono::seconds within_;
  const std::chrono::steady_clock::time_point end_;
};

/// Polls `holds` each millisecond until `holds` returns true. Throws WaitExpired past the deadline.
template <class Predicate>
void waitFor(std::string_view what, Predicate&& holds, std::chrono::seconds within = kHangDeadline) {
  for (const WaitDeadline wait(what, within); !holds();) wait.pause();
}

/// Polls `holds` each millisecond until `holds` returns true. Returns false past the deadline. After each false answer
/// `between` gets the number of answers so far.
template <class Predicate, class Between>
bool holdsInTime(Predicate&& holds, Between&& between) {
  const WaitDeadline wait("a condition");
  for (int look = 1; !holds(); ++look) {
    if (wait.isOver()) return false;
    between(look);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Ends the process with a message unless the guard is destroyed before the deadline. The guard bounds waits that
/// cannot be given up, such as a join, and has a thread of its own.
class HangGuard {
 public:
  explicit HangGuard(std::string_view what, std::chrono::seconds within = kHangDeadline)
      : watch_([what = std::string(what), within](const std::stop_token& over) { watch(what, within, over); }) {}

 private:
  static void watch(const std::string& what, std::chrono::seconds within, const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    ended.wait_for(lock, over, within, [] { return false; });
    if (over.stop_requested()) return;
    std::fprintf(stderr, "%s\n", WaitDeadline::describeExpiry(what, within).c_str());
    std::abort();
  }

  const std::jthread watch_;
};

/// Waits for the result of a future and returns the result; an exception of the future passes through. Ends the process
/// past the deadline, because the destructor of a future of std::async would wait for the same result again.
template <class Result>
Result resultOf(std::string_view what, std::future<Result>& future, std::chrono::seconds within = kHangDeadline) {
  const HangGuard guard(what, within);
  return future.get();
}

/// Joins a thread. Ends the process past the deadline, because a hanging thread cannot be left behind.
inline void join(std::string_view what, std::thread& thread, std::chrono::seconds within = kHangDeadline) {
  const HangGuard guard(what, within);
  thread.join();
}

/// Joins all threads of a container within one deadline. Ends the process past the deadline.
template <class Threads>
void joinAll(std::string_view what, Threads& threads, std::chrono::seconds within = kWorkDeadline) {
  const HangGuard guard(what, within);
  for (auto& thread : threads) thread.join();
}

}  // namespace jobq::testkit
