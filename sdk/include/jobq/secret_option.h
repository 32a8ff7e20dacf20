// Options of a plugin that are secrets, such as a password: the host shows only whether they are set.
#pragma once

#include <string>
#include <string_view>

#include "jobq/config.h"

namespace jobq {

/// The beginning of the help of a secret, by which the host knows it.
inline constexpr std::string_view kSecretMark = "secret: ";

/// Reads a text that `jobqctl plugin describe` and `GET /v1/plugins` show as `set`; empty if it is not set. Throws as
/// PluginConfig::text() does. A server that does not know secrets shows the text.
inline std::string readSecret(const PluginConfig& config, std::string_view key, std::string_view help) {
  return config.text(key, {}, std::string(kSecretMark) + std::string(help));
}

}  // namespace jobq
