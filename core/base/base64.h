// Base64 as in RFC 4648, section 4: with padding, without line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jobq {

std::string toBase64(std::string_view bytes);

/// Returns nullopt for any text other than padded base64.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace jobq
