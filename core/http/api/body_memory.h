// Memory for large bodies: of requests while the server reads and stores them, and of answers until they are sent. All
// endpoints share the memory; a single endpoint may use at most a quarter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/http/transport/budget.h"
#include "jobq/mutex.h"

namespace jobq {

/// Budget of bytes for bodies, with a share for each endpoint. Any thread may call the functions.
class BodyMemory {
 public:
  /// Bytes of the largest body that any call may have. The share of an endpoint is at least as large.
  static constexpr std::uint64_t kLargestBody = 20UL << 20;

  /// `bytes` is the whole budget; an endpoint may reserve a quarter, and at least kLargestBody.
  explicit BodyMemory(std::uint64_t bytes) noexcept
      : all_(bytes), perEndpoint_(bytes / 4 > kLargestBody ? bytes / 4 : kLargestBody) {}

  /// Bytes reserved for one body. The destructor gives the bytes back; the BodyMemory has to outlive the reservation.
  /// Used by one thread at a time.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&&) noexcept = default;
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(endpoint_, other.endpoint_);
      std::swap(ofEndpoint_, other.ofEndpoint_);
      std::swap(ofAll_, other.ofAll_);
      return *this;
    }

    /// Returns the reserved bytes.
    std::uint64_t amount() const noexcept { return ofAll_.amount(); }

    /// Reserves `amount` more bytes for a body of `endpoint`; each call names the same endpoint. Returns false if too
    /// few bytes are left; the reservation is unchanged then.
    [[nodiscard]] bool grow(BodyMemory& memory, std::string_view endpoint, std::uint64_t amount);
    /// Gives all reserved bytes back.
    void release() noexcept { shrinkTo(0); }
    /// Gives the part beyond `amount` back.
    void shrinkTo(std::uint64_t amount) noexcept {
      ofAll_.shrinkTo(amount);
      ofEndpoint_.shrinkTo(amount);
    }

   private:
    std::shared_ptr<Budget> endpoint_;  // outlives ofEndpoint_
    Budget::Reservation ofEndpoint_;
    Budget::Reservation ofAll_;
  };

  /// Returns whether a body of `amount` bytes would fit now. Reserves no bytes.
  bool hasRoom(std::string_view endpoint, std::uint64_t amount);

  /// Returns the bytes of the whole budget.
  std::uint64_t whole() const noexcept { return all_.whole(); }
  /// Returns the bytes left for all endpoints together.
  std::uint64_t left() const noexcept { return all_.left(); }

 private:
  std::shared_ptr<Budget> budgetOf(std::string_view endpoint);

  Budget all_;
  const std::uint64_t perEndpoint_;
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Budget>, std::less<>> endpoints_ JOBQ_GUARDED_BY(mutex_);  // budgets in use
};

}  // namespace jobq
