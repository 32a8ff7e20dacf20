// SHA-256, for texts that are compared and never shown again.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns the digest as 64 lower-case hexadecimal digits. Throws Error if OpenSSL fails. Any thread may call.
std::string sha256(std::string_view text);

}  // namespace jobq
