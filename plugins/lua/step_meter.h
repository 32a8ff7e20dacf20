// Counts the steps of C++ code that works for a script, and hands them over in batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jobq::lua {

/// Who runs a matcher. Both verbs may throw (Lua's errors are exceptions here); what they interrupt is not used again.
class MatchHost {
 public:
  virtual void spend(std::uint64_t steps) = 0;
  /// The pattern is wrong, or asks for too much.
  [[noreturn]] virtual void refuse(const char* message) = 0;

 protected:
  ~MatchHost() = default;
};

/// Of one call; its thread only.
class StepMeter {
 public:
  /// Steps are handed over when so many have come together.
  static constexpr std::uint64_t kBatch = 2048;

  explicit StepMeter(MatchHost& host) : host_(host) {}

  void charge(std::uint64_t steps) {
    used_ += steps;
    if (used_ >= kBatch) flush();
  }

  /// Hands over what is left; the last act of a call.
  void flush() {
    const std::uint64_t steps = used_;
    used_ = 0;
    host_.spend(steps);
  }

 private:
  MatchHost& host_;
  std::uint64_t used_ = 0;
};

/// Whether two texts of the same size are equal; a step a byte.
bool sameText(StepMeter& meter, std::string_view left, std::string_view right);

/// Where `needle` begins in `text`, or nullptr; a step a byte. Takes size x size steps at worst, like the stock one.
const char* findText(StepMeter& meter, std::string_view text, std::string_view needle);

}  // namespace jobq::lua
