// Base64 (RFC 4648, section 4): standard alphabet, padding, no line breaks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace jobq::image {

struct Base64Fault {
  std::size_t offset;  ///< of the first character that is wrong
  const char* reason;  ///< "a character is not of the base64 alphabet"
};

/// The bytes, or why the text is not base64. Any thread.
std::variant<std::string, Base64Fault> decodeBase64(std::string_view text);

void appendBase64(std::string& out, std::string_view bytes);

}  // namespace jobq::image
