#include "stdlib/pattern_single.h"

#include "stdlib/character_class.h"

namespace jobq::lua {

namespace {

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

// Returns true if `c` belongs to the set whose text between the brackets is `at` to `last`. `pay` is called once for
// each member.
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
bool Single::inSet(StepMeter& meter, char c) const {
  const char* const first = begin_ + 1;
  const char* const last = end_ - 1;
  if (static_cast<std::uint64_t>(last - first) < StepMeter::kBatch) return lookUp(byte(c), first, last, [] {});
  return lookUp(byte(c), first, last, [&meter] { meter.charge(1); });
}

bool Single::fits(StepMeter& meter, char c) const {
  switch (*begin_) {
    case '.': return true;
    case '%': return inClass(byte(c), byte(begin_[1]));
    case '[': return inSet(meter, c);
    default: return c == *begin_;
  }
}

const char* Single::run(StepMeter& meter, const char* at, const char* end) const {
  const std::uint64_t each = price();
  const auto most = static_cast<std::ptrdiff_t>(StepMeter::kBatch / each);
  while (true) {
    const char* const limit = at + std::min<std::ptrdiff_t>(most, end - at);
    const char* const stop = scan(meter, at, limit);
    meter.charge(static_cast<std::uint64_t>(stop - at + 1) * each);
    if (stop != limit || limit == end) return stop;
    at = stop;
  }
}

const char* Single::scan(StepMeter& meter, const char* at, const char* limit) const {
  const char first = *begin_;
  if (first == '.') return limit;
  if (first == '%') {
    const unsigned char name = byte(begin_[1]);
    while (at != limit && inClass(byte(*at), name)) ++at;
  } else if (first == '[') {
    while (at != limit && inSet(meter, *at)) ++at;
  } else {
    while (at != limit && *at == first) ++at;
  }
  return at;
}

}  // namespace jobq::lua
