#include "stdlib/pattern_reader.h"

#include <cstdint>

namespace jobq::lua {

PatternReader::Item PatternReader::itemAt(const char* pattern) const {
  switch (*pattern) {
    case '(': return peek(pattern + 1) == ')' ? Item::kPosition : Item::kOpen;
    case ')': return Item::kClose;
    case '$': return pattern + 1 == end_ ? Item::kEnd : Item::kSingle;
    case '%': break;
    default: return Item::kSingle;
  }
  switch (const char c = peek(pattern + 1)) {
    case 'b': return Item::kBalance;
    case 'f': return Item::kFrontier;
    default: return '0' <= c && c <= '9' ? Item::kReference : Item::kSingle;
  }
}

// A single costs a step for each of its characters: the time to read the single and to test it once.
Single PatternReader::readSingle(const char* pattern) {
  const char* end = pattern + 1;
  if (*pattern == '%') {
    if (end == end_) host_.refuse("malformed pattern (ends with '%')");
    ++end;
  } else if (*pattern == '[') {
    end = setEnd(end);
  }
  const Single single(pattern, end);
  meter_.charge(single.price());
  return single;
}

// The first character of a set never ends the set.
const char* PatternReader::setEnd(const char* at) {
  if (peek(at) == '^') ++at;
  const char* paid = at;
  do {
    if (at == end_) host_.refuse("malformed pattern (missing ']')");
    if (*at++ == '%' && at != end_) ++at;
    if (static_cast<std::uint64_t>(at - paid) > StepMeter::kBatch) {
      meter_.charge(static_cast<std::uint64_t>(at - paid));
      paid = at;
    }
  } while (peek(at) != ']');
  return at + 1;
}

const char* PatternReader::readPair(const char* at) const {
  if (end_ - at < 2) host_.refuse("malformed pattern (missing arguments to '%b')");
  return at;
}

}  // namespace jobq::lua
