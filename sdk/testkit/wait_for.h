// Bounded waits for tests. A test that waits for another thread names what it waits for; after the deadline the name is
// printed and the test fails, instead of hanging. The deadline bounds a hang and never judges how fast something is.
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

/// Generous: a machine whose processors are all taken by other work still comes to an end before it.
inline constexpr std::chrono::seconds kHangDeadline{60};
/// The same for threads that do work of their own, which a sanitizer makes ten times as long.
inline constexpr std::chrono::seconds kWorkDeadline{300};

/// Thrown by a wait that has passed its deadline. The text says what the wait was for.
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

  /// Waits for a notification of `condition`, which may come without cause: for the body of a while loop. Throws
  /// WaitExpired past the deadline.
  void on(Condition& condition, Mutex& mutex) JOBQ_REQUIRES(mutex) {
    if (isOver()) expire();
    condition.waitFor(mutex, end_ - std::chrono::steady_clock::now());
  }

  /// Rests for a millisecond between two looks at a condition. Throws WaitExpired past the deadline.
  void pause() const {
    if (isOver()) expire();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  bool isOver() const { return std::chrono::steady_clock::now() >= end_; }

  /// Prints what the wait was for, because the exception may never reach the test: its way up may join a thread that
  /// hangs. Then throws WaitExpired.
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

/// Polls `holds` each millisecond until it returns true. Throws WaitExpired past the deadline.
template <class Predicate>
void waitFor(std::string_view what, Predicate&& holds, std::chrono::seconds within = kHangDeadline) {
  for (const WaitDeadline wait(what, within); !holds();) wait.pause();
}

/// Ends the process with a message unless it is destroyed before the deadline: for waits that cannot be given up, like
/// a join. One thread of its own, which ends with it.
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

/// Waits for the future's result and returns it; an exception of the future passes through. Past the deadline it ends
/// the process, because the destructor of a future of std::async would wait for the same result once more.
template <class Result>
Result resultOf(std::string_view what, std::future<Result>& future, std::chrono::seconds within = kHangDeadline) {
  const HangGuard guard(what, within);
  return future.get();
}

/// Joins a thread. Past the deadline it ends the process: a thread that hangs cannot be left behind.
inline void join(std::string_view what, std::thread& thread, std::chrono::seconds within = kHangDeadline) {
  const HangGuard guard(what, within);
  thread.join();
}

/// Joins each thread of a container, all within one deadline.
template <class Threads>
void joinAll(std::string_view what, Threads& threads, std::chrono::seconds within = kWorkDeadline) {
  const HangGuard guard(what, within);
  for (auto& thread : threads) thread.join();
}

}  // namespace jobq::testkit
