// Trusted certificate authorities besides the system's, for receivers with a private authority (`webhook.http.ca`).
#pragma once

#include <filesystem>
#include <string>

namespace jobq::webhook_http {

/// Returns the PEM text of a file. Throws ConfigError if the file cannot be read or holds no certificate.
std::string readAuthorities(const std::filesystem::path& file);

}  // namespace jobq::webhook_http
