// The SHA-256 of a signed body.
#pragma once

#include <string>
#include <string_view>

namespace jobq::http_client {

/// Returns the SHA-256 of the bytes as 64 hexadecimal digits in lower case. Any thread. Throws std::bad_alloc.
std::string hexSha256(std::string_view bytes);

}  // namespace jobq::http_client
