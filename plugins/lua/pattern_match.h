// Matches Lua's patterns (manual 5.4, section 6.4.1) with every step counted, so that no pattern outruns a deadline.
// It knows the stock matcher's results, limits and messages, and nothing of Lua's states.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "step_meter.h"

namespace jobq::lua {

/// What a pair of parentheses has caught.
struct Capture {
  static constexpr std::ptrdiff_t kOpen = -1;
  static constexpr std::ptrdiff_t kPosition = -2;

  const char* begin;
  /// Or kOpen: its parenthesis was never closed; kPosition: it is a place, `()`.
  std::ptrdiff_t size;
};

/// Of one call; its thread only. Neither copies nor owns the texts. Recursion is bounded by kMaxDepth, memory is its
/// own size: nothing is allocated.
class Matcher {
 public:
  static constexpr int kMaxCaptures = 32;
  static constexpr int kMaxDepth = 200;

  /// `pattern` is without its anchor: whoever calls decides where a match may begin.
  Matcher(MatchHost& host, std::string_view subject, std::string_view pattern);

  /// The end of the match that begins at `at`, within the subject or at its end; nullptr: none does. Forgets the
  /// captures of the call before. Refuses a malformed pattern when the match comes to the fault, not before.
  const char* matchAt(const char* at);

  /// Of the last match.
  int captures() const { return level_; }
  const Capture& capture(int index) const { return captures_[static_cast<std::size_t>(index)]; }

  std::string_view subject() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  StepMeter& meter() { return meter_; }

 private:
  enum class Item { kSingle, kOpen, kClose, kPosition, kEnd, kBalance, kFrontier, kReference };
  // What stands for one character: `x`, `.`, `%a` or `[set]`.
  struct Single {
    const char* begin;
    const char* end;

    // Of testing it once. Who reads or tests a set that is longer than a batch pays for that on the way.
    std::uint64_t price() const { return std::min(static_cast<std::uint64_t>(end - begin), StepMeter::kBatch); }
  };
  class Level;

  Item itemAt(const char* pattern) const;
  char peek(const char* pattern) const { return pattern == patternEnd_ ? '\0' : *pattern; }
  Single readSingle(const char* pattern);
  const char* setEnd(const char* at);

  const char* match(const char* at, const char* pattern);
  const char* openCapture(const char* at, const char* pattern, std::ptrdiff_t size);
  const char* closeCapture(const char* at, const char* pattern);
  const char* longest(const char* at, const char* least, const Single& single);
  const char* shortest(const char* at, const Single& single);

  bool fits(const char* at, const Single& single);
  const char* run(const char* at, const Single& single);
  const char* scan(const char* at, const char* limit, const Single& single);
  bool inSet(unsigned char c, const Single& set);

  const char* balance(const char* at, const char* pair);
  bool isFrontier(const char* at, const Single& set);
  const char* repeat(const char* at, char digit);

  MatchHost& host_;
  StepMeter meter_;
  const char* const begin_;
  const char* const end_;
  const char* const pattern_;
  const char* const patternEnd_;
  int depth_ = 0;
  int level_ = 0;
  std::array<Capture, kMaxCaptures> captures_;
};

}  // namespace jobq::lua
