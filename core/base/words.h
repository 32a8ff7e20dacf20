// Texts of callers inside sentences of the server, and texts of several sentences.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jobq {

/// Returns true for the letters and digits of ASCII, whatever the locale.
constexpr bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Returns true if each character is a letter, a digit or one of `marks`.
constexpr bool isPlain(std::string_view text, std::string_view marks) {
  return std::ranges::all_of(text,
                             [marks](char c) { return isLetterOrDigit(c) || marks.find(c) != std::string_view::npos; });
}

/// Returns the text, or for a text over `most` bytes the beginning and "...", so that an answer or a log line stays a
/// single sentence. The cut lies between characters.
inline std::string clipped(std::string_view text, std::size_t most = 64) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

/// Returns the beginning of a refusal because of a limit: what there is too much of, the limit, and the setting that
/// raises the limit.
inline std::string limitReached(std::string_view what, std::uint64_t limit, std::string_view setting) {
  return std::string(what) + ": the limit is " + std::to_string(limit) + " (" + std::string(setting) + ")";
}

/// Calls act(line) for each line of the text. A text without a line end is one line.
template <class Action>
void eachLine(std::string_view text, Action&& act) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    act(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace jobq
