// Checks and parses an http or https address.
#pragma once

#include <optional>
#include <string>

namespace jobq::image {

struct WebUrl {
  std::string text;  ///< the address for the connection
  /// Scheme, host, port and path, for messages. A query or a password may be a secret, and other people read messages.
  std::string shown;
  bool plain = false;  ///< the URL has no user, password, query or fragment
};

/// Returns the parsed URL, or no value unless `text` is an absolute http or https URL with a host. Pure.
std::optional<WebUrl> parseWebUrl(const std::string& text);

}  // namespace jobq::image
