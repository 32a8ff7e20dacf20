// SHA-256.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns the digest as 32 bytes. Throws Error if OpenSSL fails. Any thread may call.
std::string sha256Bytes(std::string_view text);

/// Returns the digest as 64 lower-case hexadecimal digits. Throws Error if OpenSSL fails. Any thread may call.
std::string sha256(std::string_view text);

}  // namespace jobq
