// Bytes as hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns two lower-case digits for each byte. Throws only std::bad_alloc. Any thread may call.
inline std::string toHex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace jobq
