// The parts of the matcher that examine the subject's characters.
#include <algorithm>

#include "stdlib/character_class.h"
#include "stdlib/pattern_match.h"

namespace jobq::lua {

namespace {

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

// Searches the inside of the brackets, `at` to `last`. `pay` is called once per member.
template <class Pay>
bool lookUp(unsigned char c, const char* at, const char* last, Pay pay) {
  const bool opposite = *at == '^';
  if (opposite) ++at;
  for (; at < last; ++at) {
    pay();
    if (*at == '%') {
      // A range that ends in '%' can leave a '%' directly before the bracket. The bracket then is the member.
      ++at;
      if (inClass(c, byte(*at))) return !opposite;
    } else if (last - at > 2 && at[1] == '-') {
      if (byte(*at) <= c && c <= byte(at[2])) return !opposite;
      at += 2;
    } else if (byte(*at) == c) {
      return !opposite;
    }
  }
  return opposite;
}

}  // namespace

// The caller charges the price of the set. Only a set longer than a batch is charged here as well, member by member.
bool Matcher::inSet(unsigned char c, const Single& set) {
  const char* const first = set.begin + 1;
  const char* const last = set.end - 1;
  if (static_cast<std::uint64_t>(last - first) < StepMeter::kBatch) return lookUp(c, first, last, [] {});
  return lookUp(c, first, last, [this] { meter_.charge(1); });
}

bool Matcher::fits(const char* at, const Single& single) {
  if (at == end_) return false;
  switch (*single.begin) {
    case '.': return true;
    case '%': return inClass(byte(*at), byte(single.begin[1]));
    case '[': return inSet(byte(*at), single);
    default: return *at == *single.begin;
  }
}

// Returns the place of the first character that does not fit, or the subject's end.
const char* Matcher::run(const char* at, const Single& single) {
  const std::uint64_t price = single.price();
  const auto most = static_cast<std::ptrdiff_t>(StepMeter::kBatch / price);
  while (true) {
    const char* const limit = at + std::min<std::ptrdiff_t>(most, end_ - at);
    const char* const stop = scan(at, limit, single);
    meter_.charge(static_cast<std::uint64_t>(stop - at + 1) * price);
    if (stop != limit || limit == end_) return stop;
    at = stop;
  }
}

const char* Matcher::scan(const char* at, const char* limit, const Single& single) {
  const char first = *single.begin;
  if (first == '.') return limit;
  if (first == '%') {
    const unsigned char name = byte(single.begin[1]);
    while (at != limit && inClass(byte(*at), name)) ++at;
  } else if (first == '[') {
    while (at != limit && inSet(byte(*at), single)) ++at;
  } else {
    while (at != limit && *at == first) ++at;
  }
  return at;
}

// `%bxy`: from an x on, as many x as y.
const char* Matcher::balance(const char* at, const char* pair) {
  if (patternEnd_ - pair < 2) host_.refuse("malformed pattern (missing arguments to '%b')");
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
  return !inSet(byte(before), set) && inSet(byte(here), set);
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
