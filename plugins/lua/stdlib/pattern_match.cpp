#include "stdlib/pattern_match.h"

#include <cstdint>

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
      reader_(host, meter_, pattern),
      begin_(subject.data()),
      end_(begin_ + subject.size()) {}

const char* Matcher::matchAt(const char* at) {
  meter_.charge(1);
  level_ = 0;
  return match(at, reader_.begin());
}

// Returns the end of the match of the pattern's rest, from `pattern` on. Recursion happens exactly where the stock
// matcher calls itself, so that "too complex" means the same patterns.
const char* Matcher::match(const char* at, const char* pattern) {
  const Level level(*this);
  while (at != nullptr && pattern != reader_.end()) {
    const Item item = reader_.itemAt(pattern);
    if (item == Item::kSingle) {
      const Single single = reader_.readSingle(pattern);
      const char suffix = reader_.peek(single.end());
      const bool repeats = suffix == '*' || suffix == '+' || suffix == '-' || suffix == '?';
      pattern = repeats ? single.end() + 1 : single.end();
      if (at == end_ || !single.fits(meter_, *at)) {
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
        at = balance(at, reader_.readPair(pattern + 2));
        pattern += 4;
        break;
      case Item::kReference:
        at = repeat(at, pattern[1]);
        pattern += 2;
        break;
      default: {
        if (reader_.peek(pattern + 2) != '[') host_.refuse("missing '[' after '%f' in pattern");
        const Single set = reader_.readSingle(pattern + 2);
        if (!isFrontier(at, set)) return nullptr;
        pattern = set.end();
      }
    }
  }
  return at;
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
  for (const char* to = single.run(meter_, at, end_);; --to) {
    if (const char* end = match(to, single.end() + 1)) return end;
    if (to == least) return nullptr;
  }
}

const char* Matcher::shortest(const char* at, const Single& single) {
  for (;; ++at) {
    if (const char* end = match(at, single.end() + 1)) return end;
    meter_.charge(single.price());
    if (at == end_ || !single.fits(meter_, *at)) return nullptr;
  }
}

// `%bxy`: from an x on, as many x as y.
const char* Matcher::balance(const char* at, const char* pair) {
  if (at == end_ || *at != pair[0]) return nullptr;
  std::size_t open = 1;
  for (++at; at != end_; ++at) {
    meter_.charge(1);
    // With x equal to y, the next x closes.
    if (*at == pair[1]) {
      if (--open == 0) return at + 1;
    } else if (*at == pair[0]) {
      ++open;
    }
  }
  return nullptr;
}

// `%f[set]`: the preceding character is outside of the set, the character at `at` inside; both ends of the subject
// count as '\0'.
bool Matcher::isFrontier(const char* at, const Single& set) {
  const char before = at == begin_ ? '\0' : at[-1];
  const char here = at == end_ ? '\0' : *at;
  return !set.inSet(meter_, before) && set.inSet(meter_, here);
}

// `%1`: the text of the capture, repeated. A position is never found again.
const char* Matcher::repeat(const char* at, char digit) {
  const int index = digit - '1';
  if (index < 0 || index >= level_ || capture(index).size == Capture::kOpen) {
    char message[] = "invalid capture index %0";
    message[sizeof message - 2] = digit;
    host_.refuse(message);
  }
  const Capture& caught = capture(index);
  if (caught.size < 0 || caught.size > end_ - at) return nullptr;
  const auto size = static_cast<std::size_t>(caught.size);
  return sameText(meter_, {at, size}, {caught.begin, size}) ? at + size : nullptr;
}

}  // namespace jobq::lua
