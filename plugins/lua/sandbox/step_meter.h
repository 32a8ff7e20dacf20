// Counts the steps of C++ code that works for a script, and reports the steps in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jobq::lua {

/// The user of a matcher. Both functions may throw, because Lua's errors are exceptions here. Interrupted objects are
/// not used again.
class MatchHost {
 public:
  /// Takes `steps` of work done for the script. May throw to end the script.
  virtual void spend(std::uint64_t steps) = 0;
  /// Reports that the pattern is wrong or demands too much. Always throws.
  [[noreturn]] virtual void refuse(const char* message) = 0;

 protected:
  ~MatchHost() = default;
};

/// Serves one call, on its thread. `host` outlives the meter.
class StepMeter {
 public:
  /// Number of steps at which the meter reports to the host.
  static constexpr std::uint64_t kBatch = 2048;

  explicit StepMeter(MatchHost& host) : host_(host) {}

  /// Counts `steps`, and reports them to the host when a batch is full. Throws what the host throws.
  void charge(std::uint64_t steps) {
    used_ += steps;
    if (used_ >= kBatch) flush();
  }

  /// Reports the remaining steps to the host. Called at the end of each call.
  void flush() {
    const std::uint64_t steps = used_;
    used_ = 0;
    host_.spend(steps);
  }

 private:
  MatchHost& host_;
  std::uint64_t used_ = 0;
};

/// Returns true if two texts of the same size are equal. Charges a step per byte.
bool sameText(StepMeter& meter, std::string_view left, std::string_view right);

/// Returns the place of `needle` in `text`, or nullptr. Charges a step per byte. Takes size x size steps at worst, like
/// the stock function.
const char* findText(StepMeter& meter, std::string_view text, std::string_view needle);

}  // namespace jobq::lua
