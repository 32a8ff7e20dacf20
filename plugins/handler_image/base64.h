// Base64 (RFC 4648, section 4): standard alphabet, padding, no line breaks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace jobq::image {

struct Base64Fault {
  std::size_t offset;  ///< offset of the first wrong character
  const char* reason;  ///< such as "a character is not in the base64 alphabet"
};

/// Returns the decoded bytes, or the reason why the text is not base64. Any thread.
std::variant<std::string, Base64Fault> decodeBase64(std::string_view text);

/// Appends the base64 text of `bytes` to `out`. Any thread.
void appendBase64(std::string& out, std::string_view bytes);

}  // namespace jobq::image
