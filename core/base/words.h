// Texts of callers inside sentences of the server.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq {

/// Returns the text, or for a text over `most` bytes the beginning and "...", so that an answer or a log line stays a
/// single sentence. The cut lies between characters.
inline std::string clipped(std::string_view text, std::size_t most = 64) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace jobq
