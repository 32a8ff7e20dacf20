// Memory for large bodies while they are read and stored: shared by all endpoints, of which one has at most a quarter.
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

/// Any thread.
class BodyMemory {
 public:
  /// The largest body that any call may have; an endpoint has at least as much, so that it can take one.
  static constexpr std::uint64_t kLargestBody = 20UL << 20;

  explicit BodyMemory(std::uint64_t bytes) noexcept
      : all_(bytes), perEndpoint_(bytes / 4 > kLargestBody ? bytes / 4 : kLargestBody) {}

  /// The bytes that one body has drawn. The destructor gives them back, and the BodyMemory outlives it. One thread.
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

    std::uint64_t amount() const noexcept { return ofAll_.amount(); }

    /// Draws `amount` bytes more for a body of this endpoint, the same one in each call. Returns false if there are not
    /// so many left; the share is as before.
    [[nodiscard]] bool grow(BodyMemory& memory, std::string_view endpoint, std::uint64_t amount);
    void giveBack() noexcept {
      ofAll_.giveBack();
      ofEndpoint_.giveBack();
    }

   private:
    std::shared_ptr<Budget> endpoint_;  // outlives ofEndpoint_
    Budget::Reservation ofEndpoint_;
    Budget::Reservation ofAll_;
  };

  /// Returns whether a body of `amount` bytes would find room now. Draws nothing.
  bool hasRoom(std::string_view endpoint, std::uint64_t amount);

  std::uint64_t left() const noexcept { return all_.left(); }

 private:
  std::shared_ptr<Budget> budgetOf(std::string_view endpoint);

  Budget all_;
  const std::uint64_t perEndpoint_;
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Budget>, std::less<>> endpoints_ JOBQ_GUARDED_BY(mutex_);  // with large bodies
};

}  // namespace jobq
