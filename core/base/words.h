// Callers' own words inside our sentences.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq {

/// The text, or its beginning and "..." when it is long: an answer and a log line stay one sentence, whatever was sent.
/// Cut between characters.
inline std::string clipped(std::string_view text, std::size_t most = 64) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace jobq
