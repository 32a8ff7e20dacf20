#include "stdlib/pattern_match.h"

namespace jobq::lua {

// A nested call of match().
class Matcher::Level {
 public:
  explicit Level(Matcher& matcher) : matcher_(matcher) {
    if (matcher_.depth_ == kMaxDepth) matcher_.host_.refuse("pattern too complex");
    ++matcher_.depth_;
  }
  ~Level() { --matcher_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Matcher& matcher_;
};

// The captures stay uninitialised: level_ limits reads to captures that were written.
Matcher::Matcher(MatchHost& host, std::string_view subject, std::string_view pattern)  // NOLINT
    : host_(host),
      meter_(host),
      begin_(subject.data()),
      end_(begin_ + subject.size()),
      pattern_(pattern.data()),
      patternEnd_(pattern_ + pattern.size()) {}

const char* Matcher::matchAt(const char* at) {
  meter_.charge(1);
  level_ = 0;
  return match(at, pattern_);
}

Matcher::Item Matcher::itemAt(const char* pattern) const {
  switch (*pattern) {
    case '(': return peek(pattern + 1) == ')' ? Item::kPosition : Item::kOpen;
    case ')': return Item::kClose;
    case '$': return pattern + 1 == patternEnd_ ? Item::kEnd : Item::kSingle;
    case '%': break;
    default: return Item::kSingle;
  }
  switch (const char c = peek(pattern + 1)) {
    case 'b': return Item::kBalance;
    case 'f': return Item::kFrontier;
    default: return '0' <= c && c <= '9' ? Item::kReference : Item::kSingle;
  }
}

// Returns the end of the match of the pattern's rest, from `pattern` on. Recursion happens exactly where the stock
// matcher calls itself, so that "too complex" means the same patterns.
const char* Matcher::match(const char* at, const char* pattern) {
  const Level level(*this);
  while (at != nullptr && pattern != patternEnd_) {
    const Item item = itemAt(pattern);
    if (item == Item::kSingle) {
      const Single single = readSingle(pattern);
      const char suffix = peek(single.end);
      const bool repeats = suffix == '*' || suffix == '+' || suffix == '-' || suffix == '?';
      pattern = repeats ? single.end + 1 : single.end;
      if (!fits(at, single)) {
        if (!repeats || suffix == '+') return nullptr;
        continue;
      }
      if (suffix == '*') return longest(at + 1, at, single);
      if (suffix == '+') return longest(at + 1, at + 1, single);
      if (suffix == '-') return shortest(at, single);
      if (suffix == '?') {
        if (const char* end = match(at + 1, pattern)) return end;
      } else {
        ++at;
      }
      continue;
    }
    meter_.charge(1);
    switch (item) {
      case Item::kOpen: return openCapture(at, pattern + 1, Capture::kOpen);
      case Item::kPosition: return openCapture(at, pattern + 2, Capture::kPosition);
      case Item::kClose: return closeCapture(at, pattern + 1);
      case Item::kEnd: return at == end_ ? at : nullptr;
      case Item::kBalance:
        at = balance(at, pattern + 2);
        pattern += 4;
        break;
      case Item::kReference:
        at = repeat(at, pattern[1]);
        pattern += 2;
        break;
      default: {
        if (peek(pattern + 2) != '[') host_.refuse("missing '[' after '%f' in pattern");
        const Single set = readSingle(pattern + 2);
        if (!isFrontier(at, set)) return nullptr;
        pattern = set.end;
      }
    }
  }
  return at;
}

// A single costs a step for each of its characters: the time to read the single and to test it once.
Matcher::Single Matcher::readSingle(const char* pattern) {
  const char* end = pattern + 1;
  if (*pattern == '%') {
    if (end == patternEnd_) host_.refuse("malformed pattern (ends with '%')");
    ++end;
  } else if (*pattern == '[') {
    end = setEnd(end);
  }
  const Single single{pattern, end};
  meter_.charge(single.price());
  return single;
}

// The first character of a set never ends the set.
const char* Matcher::setEnd(const char* at) {
  if (peek(at) == '^') ++at;
  const char* paid = at;
  do {
    if (at == patternEnd_) host_.refuse("malformed pattern (missing ']')");
    if (*at++ == '%' && at != patternEnd_) ++at;
    if (static_cast<std::uint64_t>(at - paid) > StepMeter::kBatch) {
      meter_.charge(static_cast<std::uint64_t>(at - paid));
      paid = at;
    }
  } while (peek(at) != ']');
  return at + 1;
}

const char* Matcher::openCapture(const char* at, const char* pattern, std::ptrdiff_t size) {
  if (level_ == kMaxCaptures) host_.refuse("too many captures");
  captures_[static_cast<std::size_t>(level_)] = {at, size};
  ++level_;
  const char* end = match(at, pattern);
  if (end == nullptr) --level_;
  return end;
}

const char* Matcher::closeCapture(const char* at, const char* pattern) {
  int index = level_ - 1;
  while (index >= 0 && capture(index).size != Capture::kOpen) --index;
  if (index < 0) host_.refuse("invalid pattern capture");
  Capture& own = captures_[static_cast<std::size_t>(index)];
  own.size = at - own.begin;
  const char* end = match(at, pattern);
  if (end == nullptr) own.size = Capture::kOpen;
  return end;
}

// The characters before `at` fit already; `least` is the shortest acceptable end.
const char* Matcher::longest(const char* at, const char* least, const Single& single) {
  for (const char* to = run(at, single);; --to) {
    if (const char* end = match(to, single.end + 1)) return end;
    if (to == least) return nullptr;
  }
}

const char* Matcher::shortest(const char* at, const Single& single) {
  for (;; ++at) {
    if (const char* end = match(at, single.end + 1)) return end;
    meter_.charge(single.price());
    if (!fits(at, single)) return nullptr;
  }
}

}  // namespace jobq::lua
