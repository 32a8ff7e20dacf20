#include "stdlib/pattern_match.h"

#include <cstdint>

namespace jobq::lua {

// A nested call of match().
class Matcher::DepthGuard {
 public:
  explicit DepthGuard(Matcher& matcher) : matcher_(matcher) {
    if (matcher_.depth_ == kMaxDepth) matcher_.host_.refuse("pattern too complex");
    ++matcher_.depth_;
  }
  ~DepthGuard() { --matcher_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Matcher& matcher_;
};

// The captures stay uninitialised: captureCount_ limits reads to captures that were written.
Matcher::Matcher(MatchHost& host, std::string_view subject, std::string_view pattern)  // NOLINT
    : host_(host),
      meter_(host),
      reader_(host, meter_, pattern),
      begin_(subject.data()),
      end_(begin_ + subject.size()) {}

const char* Matcher::matchAt(const char* at) {
  meter_.charge(1);
  captureCount_ = 0;
  return match(at, reader_.begin());
}

// Returns the end of the match of the pattern's rest, from `pattern` on. The code recurses where stock
// Lua recurses, so both refuse the same patterns as too complex.
const char* Matcher::match(const char* at, const char* pattern) {
  const DepthGuard guard(*this);
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
        at = matchBalanced(at, reader_.readPair(pattern + 2));
        pattern += 4;
        break;
      case Item::kReference:
        at = matchBackReference(at, pattern[1]);
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
  if (captureCount_ == kMaxCaptures) host_.refuse("too many captures");
  captures_[static_cast<std::size_t>(captureCount_)] = {at, size};
  ++captureCount_;
  const char* end = match(at, pattern);
  if (end == nullptr) --captureCount_;
  return end;
}

const char* Matcher::closeCapture(const char* at, const char* pattern) {
  int index = captureCount_ - 1;
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

// `%bxy`: matches a text that begins with x and ends at the y that balances it. If x equals y, the next x ends the
// match.
const char* Matcher::matchBalanced(const char* at, const char* pair) {
  if (at == end_ || *at != pair[0]) return nullptr;
  std::size_t open = 1;
  for (++at; at != end_; ++at) {
    meter_.charge(1);
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

// `%1` to `%9`: matches the text of an earlier capture again. A position capture has no text and never matches.
const char* Matcher::matchBackReference(const char* at, char digit) {
  const int index = digit - '1';
  if (index < 0 || index >= captureCount_ || capture(index).size == Capture::kOpen) {
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
