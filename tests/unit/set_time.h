// The machine's time, set by a test.
#pragma once

#include <chrono>

#include "core/base/clock.h"
#include "jobq/time.h"

namespace jobq::test {

/// Stands still until pass(). One thread uses the object; several threads may read the time while no thread calls
/// pass().
struct SetTime final : TimeSource {
  std::chrono::system_clock::time_point wall() const override { return wall_; }
  std::chrono::steady_clock::time_point steady() const override { return steady_; }
  bool isSynchronised() const override { return isSynchronised_; }
  void pass(std::chrono::milliseconds time) {
    wall_ += time;
    steady_ += time;
  }
  std::chrono::system_clock::time_point wall_ = fromEpochMillis(1'767'225'600'000);
  std::chrono::steady_clock::time_point steady_;
  bool isSynchronised_ = true;
};

}  // namespace jobq::test
