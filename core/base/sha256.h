// SHA-256, for what is compared and never shown again.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// The digest as 64 lower-case hexadecimal digits. Any thread.
std::string sha256(std::string_view text);

}  // namespace jobq
