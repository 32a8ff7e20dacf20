// Matches Lua's patterns (manual 5.4, section 6.4.1) with every step counted, so that no pattern outruns a deadline.
// The matcher has the results, limits and messages of the stock matcher, and is independent of Lua's states.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sandbox/step_meter.h"
#include "stdlib/pattern_reader.h"
#include "stdlib/pattern_single.h"

namespace jobq::lua {

/// The text caught by a pair of parentheses.
struct Capture {
  static constexpr std::ptrdiff_t kOpen = -1;
  static constexpr std::ptrdiff_t kPosition = -2;

  const char* begin;
  /// Bytes; kOpen for a parenthesis that was never closed; kPosition for a position, `()`.
  std::ptrdiff_t size;
};

/// Serves one call, on its thread. The texts are neither copied nor owned. kMaxDepth bounds the recursion, and no
/// memory is allocated beyond the object itself.
class Matcher {
 public:
  static constexpr int kMaxCaptures = 32;
  static constexpr int kMaxDepth = 200;

  /// `pattern` comes without its anchor: the caller decides where a match may begin. `host` and both texts outlive the
  /// matcher.
  Matcher(MatchHost& host, std::string_view subject, std::string_view pattern);

  /// Returns the end of the match that begins at `at`, or nullptr if no match begins there. `at` lies within the
  /// subject or at its end. Drops the captures of the preceding call. Refuses a malformed pattern through the host when
  /// the match reaches the fault, not before. Throws what the host throws.
  const char* matchAt(const char* at);

  /// Returns the number of captures of the last match.
  int captures() const { return captureCount_; }
  /// Returns a capture of the last match. `index`: from 0 to captures() - 1.
  const Capture& capture(int index) const { return captures_[static_cast<std::size_t>(index)]; }

  std::string_view subject() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  StepMeter& meter() { return meter_; }

 private:
  using Item = PatternReader::Item;
  class DepthGuard;

  const char* match(const char* at, const char* pattern);
  const char* openCapture(const char* at, const char* pattern, std::ptrdiff_t size);
  const char* closeCapture(const char* at, const char* pattern);
  const char* longest(const char* at, const char* least, const Single& single);
  const char* shortest(const char* at, const Single& single);

  const char* matchBalanced(const char* at, const char* pair);
  bool isFrontier(const char* at, const Single& set);
  const char* matchBackReference(const char* at, char digit);

  MatchHost& host_;
  StepMeter meter_;
  PatternReader reader_;
  const char* const begin_;
  const char* const end_;
  int depth_ = 0;
  int captureCount_ = 0;
  std::array<Capture, kMaxCaptures> captures_;
};

}  // namespace jobq::lua
