// The listening socket: takes connections in, as long as there are descriptors for them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/http/transport/address_places.h"
#include "jobq/log.h"

namespace jobq {

/// One thread, except for refuse() and connections(). Deadlines are those of the steady clock.
class Acceptor {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// A connection that was taken in. The receiver owns the descriptor.
  struct Accepted {
    int descriptor;
    AddressPlaces::Place place;
  };

  /// Takes the listening socket over, which does not block. `perAddress`: connections that one peer address may have at
  /// once, 0: any number. `log` outlives it.
  Acceptor(int listener, std::size_t perAddress, Log& log) : listener_(listener), places_(perAddress), log_(log) {}
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// From now on `epoll` reports connections that wait, as events with the data `id`.
  void watchWith(int epoll, std::uint64_t id) noexcept;
  /// `epoll` reports no more of them.
  void unwatch() noexcept;

  /// Returns the next connection that waits; nothing when there is none, or the process has no descriptor left for one.
  /// In the second case the callers wait in the system's queue, and the listener is not watched until retryAt().
  std::optional<Accepted> next();

  /// Returns when the listener is to be watched again; nothing while it is.
  std::optional<Moment> retryAt() const noexcept { return retryAt_; }
  /// Watches the listener again if retryAt() has come.
  void retry(Moment now) noexcept;

  /// From now on the system refuses connections. Any thread.
  void refuse() noexcept;

  /// Returns how many connections that it has taken in are still there. Any thread.
  std::size_t connections() const { return places_.taken(); }

 private:
  std::optional<AddressPlaces::Place> takePlace(int descriptor, const sockaddr_storage& peer);
  void pause(int error);
  void complain(std::optional<Moment>& last, const char* event, const std::string& sentence);

  const int listener_;
  AddressPlaces places_;
  Log& log_;
  int epoll_ = -1;
  std::uint64_t id_ = 0;
  std::optional<Moment> retryAt_;
  std::optional<Moment> saidStarved_;
  std::optional<Moment> saidCrowded_;
};

}  // namespace jobq
