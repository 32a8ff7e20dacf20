// The epoll descriptor of the reactor thread, and the eventfd that wakes the thread.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

namespace jobq {

class Connection;

/// One thread waits; any thread arms and wakes.
class EventPoll {
 public:
  /// Data of the event that follows wake(). The event of a connection has the connection's id.
  static constexpr std::uint64_t kWakeup = 1;

  /// Asks the system for both descriptors; start() reports a failure.
  EventPoll() noexcept;
  ~EventPoll();
  EventPoll(const EventPoll&) = delete;
  EventPoll& operator=(const EventPoll&) = delete;

  /// Registers the eventfd. Throws Error if the system gave no descriptors. Call once.
  void start();

  /// Returns the epoll descriptor, owned by the object.
  int descriptor() const noexcept { return epoll_; }

  /// Registers a connection until its descriptor is closed. No event is requested. Returns false if the system refuses.
  [[nodiscard]] bool add(const Connection& connection) const noexcept;
  /// Requests one event of a registered connection; `events` are flags of epoll.
  void arm(const Connection& connection, std::uint32_t events) const noexcept;

  /// Blocks until an event, for `milliseconds` at most, or without a limit if `milliseconds` is -1. Returns the events,
  /// valid until the next call.
  std::span<const epoll_event> wait(int milliseconds) noexcept;

  /// Makes the present or the next wait() return with the event kWakeup, which stays until clearWakeup().
  void wake() const noexcept;
  void clearWakeup() const noexcept;

 private:
  const int epoll_;
  const int wakeup_;  // an eventfd
  std::array<epoll_event, 256> events_{};
};

}  // namespace jobq
