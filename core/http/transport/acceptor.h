// The listening socket. Accepts connections while the process has descriptors left.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/http/transport/address_places.h"
#include "jobq/log.h"

namespace jobq {

/// watchWith() runs on the starting thread, before the reactor thread begins. Afterwards only the reactor thread calls,
/// except for refuse() and connections(), which any thread may call. Deadlines follow the steady clock.
class Acceptor {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// An accepted connection. The receiver owns the descriptor.
  struct Accepted {
    int descriptor;
    AddressPlaces::Place place;
  };

  /// Takes ownership of `listener`, a listening socket in non-blocking mode. `perAddress` is the number of connections
  /// that a peer address may have at once; 0 means any number. `log` outlives the acceptor, and the acceptor outlives
  /// each place of an accepted connection.
  Acceptor(int listener, std::size_t perAddress, Log& log) : listener_(listener), places_(perAddress), log_(log) {}
  /// Closes the listening socket.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  /// Makes `epoll` report waiting connections as events with the data `id`.
  void watchWith(int epoll, std::uint64_t id) noexcept;
  /// Ends the reports of watchWith().
  void unwatch() noexcept;

  /// Returns the next waiting connection. Returns nullopt if no connection waits, if a descriptor or memory is missing,
  /// if connections have all descriptors that are theirs (core/process/descriptors.h),
  /// after refuse(), or after 256 failed or refused attempts; epoll then reports the rest again. Without a descriptor
  /// or memory the clients stay in the system's queue, and the listener stays unwatched until retryAt(). Closes
  /// connections beyond `perAddress` at once and logs the peer, at most once a minute. Throws std::bad_alloc.
  std::optional<Accepted> next();

  /// Returns the moment to watch the listener again, or nullopt while the listener is watched.
  std::optional<Moment> retryAt() const noexcept { return retryAt_; }
  /// Watches the listener again if retryAt() is not after `now`.
  void retry(Moment now) noexcept;

  /// Makes the system refuse further connections. Any thread.
  void refuse() noexcept;

  /// Returns the number of open connections among the accepted ones. Any thread.
  std::size_t connections() const { return places_.taken(); }

 private:
  std::optional<AddressPlaces::Place> reservePlace(int descriptor, const sockaddr_storage& peer);
  bool hasRoom() noexcept;
  void pause(int error);
  void warn(std::optional<Moment>& last, const char* event, const std::string& sentence);

  const int listener_;
  AddressPlaces places_;
  Log& log_;
  int epoll_ = -1;
  std::uint64_t id_ = 0;
  bool isFull_ = false;  // the last connection has got the last descriptor for connections
  std::optional<Moment> retryAt_;
  std::optional<Moment> lastPauseWarning_;
  std::optional<Moment> lastAddressWarning_;
};

}  // namespace jobq
