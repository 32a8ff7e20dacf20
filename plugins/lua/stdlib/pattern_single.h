// The items of a pattern that match one character: `x`, `.`, `%a` and `[set]`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sandbox/step_meter.h"

namespace jobq::lua {

/// One such item. The text of the pattern is neither copied nor owned. Functions with a meter charge steps, and throw
/// what the host of the meter throws. Used on the thread of the matcher.
class Single {
 public:
  /// `begin` to `end`: the text of the item, well-formed.
  Single(const char* begin, const char* end) : begin_(begin), end_(end) {}

  /// Returns the place in the pattern behind the item.
  const char* end() const { return end_; }

  /// Returns the steps of testing the item once. Reading or testing a set longer than a batch is charged on the way
  /// instead.
  std::uint64_t price() const { return std::min(static_cast<std::uint64_t>(end_ - begin_), StepMeter::kBatch); }

  /// Returns true if the item matches `c`. The price is charged by the caller.
  bool fits(StepMeter& meter, char c) const;

  /// Returns true if the set matches `c`. Requires an item that is a set. The price is charged by the caller.
  bool inSet(StepMeter& meter, char c) const;

  /// Returns the place of the first character from `at` on that the item does not match, or `end`. Charges the price
  /// for each tested character.
  const char* run(StepMeter& meter, const char* at, const char* end) const;

 private:
  const char* scan(StepMeter& meter, const char* at, const char* limit) const;

  const char* begin_;
  const char* end_;
};

}  // namespace jobq::lua
