// The value of one hexadecimal digit.
#pragma once

namespace jobq {

/// Returns 0 to 15 for a hexadecimal digit in either case, and -1 for any other character.
constexpr int hexDigitValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace jobq
