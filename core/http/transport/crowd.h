// The measure of how many requests a server has at once, for the choice of the thread that serves a request.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace jobq {

/// With few requests at once a thread stays with each connection and waits for the next request: the answer comes
/// soonest. With many, the reactor thread serves quick requests (RequestHandler::isQuick) one behind the other: two
/// thread switches for each request would take longer than the request.
class Crowd {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// More requests than `most` at once are a crowd.
  explicit Crowd(std::size_t most) noexcept : most_(most) {}

  /// Returns the number for a server: two requests for each processor.
  static std::size_t beginsAt() noexcept { return 2 * std::max(1U, std::thread::hardware_concurrency()); }

  /// Returns the bound of the requests of one turn of the reactor thread, at least 64. Threads of the pool serve
  /// further ones: many processors share the work, and on two the thread switches would take longer.
  static int mostInTurn() noexcept {
    return static_cast<int>(std::max(64U, 512 / std::max(1U, std::thread::hardware_concurrency())));
  }

  /// Returns true while many requests are served, or were just served. Any thread.
  bool isLarge() const noexcept { return ofThreads_ || ofReactor_; }

  /// Notes the number of HTTP threads with a connection. One thread at a time.
  void noteThreads(std::size_t busy) noexcept { set(ofThreads_, busy > most_); }
  /// Notes the number of requests in the hands of the reactor thread. The crowd lasts for kLasts after the last large
  /// number, because the reactor thread is mostly ahead of the clients. The reactor thread.
  void noteReactor(std::size_t requests, Moment now) noexcept {
    if (requests > most_) lastsUntil_ = now + kLasts;
    set(ofReactor_, now < lastsUntil_);
  }

 private:
  static constexpr std::chrono::milliseconds kLasts{50};

  static void set(std::atomic<bool>& flag, bool value) noexcept {
    if (flag != value) flag = value;
  }

  const std::size_t most_;
  std::atomic<bool> ofThreads_ = false;
  std::atomic<bool> ofReactor_ = false;
  Moment lastsUntil_{};  // used by the reactor thread
};

}  // namespace jobq
