// Trusted certificate authorities besides the system's, for servers with a private authority.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace jobq::http_client {

/// Returns the PEM text of a file, for Request::authorities. `setting` is the name of the setting that names the file,
/// for the message. Throws ConfigError if the file cannot be read or holds no certificate. Any thread.
std::string readAuthorities(const std::filesystem::path& file, std::string_view setting);

}  // namespace jobq::http_client
