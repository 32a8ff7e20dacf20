// A supply that many callers draw on and give back: places to wait, memory for bodies.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

namespace jobq {

/// Any thread; no lock.
class Budget {
 public:
  explicit Budget(std::uint64_t amount) noexcept : left_(amount) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// What somebody has drawn; goes back with its owner. The budget outlives it.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), amount_(std::exchange(other.amount_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Reservation() { giveBack(); }

    std::uint64_t amount() const noexcept { return amount_; }

    /// False: there is not that much left; the share is as before.
    [[nodiscard]] bool grow(Budget& budget, std::uint64_t amount) noexcept {
      if (!budget.draw(amount)) return false;
      budget_ = &budget;
      amount_ += amount;
      return true;
    }
    void giveBack() noexcept { shrinkTo(0); }
    /// Gives back what is beyond `amount`.
    void shrinkTo(std::uint64_t amount) noexcept {
      if (amount >= amount_) return;
      budget_->left_.fetch_add(amount_ - amount, std::memory_order_relaxed);
      amount_ = amount;
    }

   private:
    Budget* budget_ = nullptr;
    std::uint64_t amount_ = 0;
  };

  /// Nothing when there is not that much left.
  [[nodiscard]] std::optional<Reservation> take(std::uint64_t amount) noexcept {
    Reservation reservation;
    if (!reservation.grow(*this, amount)) return std::nullopt;
    return reservation;
  }

  std::uint64_t left() const noexcept { return left_.load(std::memory_order_relaxed); }

 private:
  bool draw(std::uint64_t amount) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= amount) {
      if (left_.compare_exchange_weak(left, left - amount, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  std::atomic<std::uint64_t> left_;
};

}  // namespace jobq
