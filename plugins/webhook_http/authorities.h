// Whom to trust: certificate authorities besides the system's, for receivers with a private one (`webhook.http.ca`).
#pragma once

#include <filesystem>
#include <string>

namespace jobq::webhook_http {

/// The PEM text of a file. Throws ConfigError when it cannot be read or holds no certificate.
std::string readAuthorities(const std::filesystem::path& file);

}  // namespace jobq::webhook_http
