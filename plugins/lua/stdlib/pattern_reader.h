// Reads the items of a Lua pattern (manual 5.4, section 6.4.1), independent of any subject.
#pragma once

#include <string_view>

#include "sandbox/step_meter.h"
#include "stdlib/pattern_single.h"

namespace jobq::lua {

/// Serves one matcher, on its thread. The pattern is neither copied nor owned. `host`, `meter` and the pattern outlive
/// the reader. Places in the pattern are pointers into its text. A malformed item is refused through the host when the
/// item is read, not before.
class PatternReader {
 public:
  enum class Item { kSingle, kOpen, kClose, kPosition, kEnd, kBalance, kFrontier, kReference };

  PatternReader(MatchHost& host, StepMeter& meter, std::string_view pattern)
      : host_(host), meter_(meter), begin_(pattern.data()), end_(begin_ + pattern.size()) {}

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }

  /// Returns the character at `at`, or '\0' at the end of the pattern.
  char peek(const char* at) const { return at == end_ ? '\0' : *at; }

  /// Returns the kind of the item at `at`, which is not the end of the pattern.
  Item itemAt(const char* at) const;

  /// Returns the item for one character at `at`. Charges the time to read the item and to test it once.
  Single readSingle(const char* at);

  /// Returns `at` if the two characters of `%bxy` follow there. Refuses the pattern otherwise.
  const char* readPair(const char* at) const;

 private:
  const char* setEnd(const char* at);

  MatchHost& host_;
  StepMeter& meter_;
  const char* const begin_;
  const char* const end_;
};

}  // namespace jobq::lua
