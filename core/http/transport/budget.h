// A supply shared by many callers, such as slots for waiting or memory for bodies.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace jobq {

/// Any thread may call the methods, and no call takes a lock. A reservation belongs to one thread at a time.
class Budget {
 public:
  explicit Budget(std::uint64_t amount) noexcept : whole_(amount), left_(amount) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// A drawn amount, returned to the budget by the destructor. The budget outlives the reservation.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), amount_(std::exchange(other.amount_, 0)) {}
    /// Exchanges the amounts: the former amount of this reservation goes back to its budget when `other` is destroyed.
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Reservation() { release(); }

    /// Returns the drawn amount.
    std::uint64_t amount() const noexcept { return amount_; }

    /// Draws `amount` more from `budget`. If the budget has less left, the result is false and the reservation stays as
    /// before. All calls for a reservation name the same budget.
    [[nodiscard]] bool grow(Budget& budget, std::uint64_t amount) noexcept {
      if (!budget.draw(amount)) return false;
      budget_ = &budget;
      amount_ += amount;
      return true;
    }
    /// Gives the whole amount back to the budget.
    void release() noexcept { shrinkTo(0); }
    /// Gives the part beyond `amount` back to the budget. A smaller reservation is unchanged.
    void shrinkTo(std::uint64_t amount) noexcept {
      if (amount >= amount_) return;
      budget_->left_.fetch_add(amount_ - amount, std::memory_order_relaxed);
      amount_ = amount;
    }

   private:
    Budget* budget_ = nullptr;
    std::uint64_t amount_ = 0;
  };

  /// Draws `amount`. The optional is empty if the budget has less left.
  [[nodiscard]] std::optional<Reservation> reserve(std::uint64_t amount) noexcept {
    Reservation reservation;
    if (!reservation.grow(*this, amount)) return std::nullopt;
    return reservation;
  }

  /// Returns the whole amount, as given to the constructor.
  std::uint64_t whole() const noexcept { return whole_; }

  /// Returns the amount left; another thread may draw on it at any moment.
  std::uint64_t left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  bool draw(std::uint64_t amount) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= amount) {
      if (left_.compare_exchange_weak(left, left - amount, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  const std::uint64_t whole_;
  std::atomic<std::uint64_t> left_;  // in relaxed order, because the number protects no other memory
};

}  // namespace jobq
