// The byte order mark that editors and shells of Windows write before a text in UTF-8. The mark is no part of the text.
#pragma once

#include <string_view>

namespace jobq {

/// Returns `text` without the byte order mark that it begins with, if any. Every text that a person wrote passes
/// here once, where the text enters. Throws nothing; any thread.
constexpr std::string_view withoutByteOrderMark(std::string_view text) noexcept {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace jobq
