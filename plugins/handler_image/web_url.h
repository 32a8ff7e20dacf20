// An http or https address, checked and taken apart.
#pragma once

#include <optional>
#include <string>

namespace jobq::image {

struct WebUrl {
  std::string text;  ///< what to connect to
  /// Scheme, host, port and path: a query or a password may be a secret, and a message is read by others.
  std::string shown;
  bool plain = false;  ///< neither user, password, query nor fragment
};

/// Nothing when the text is not an absolute http or https URL with a host. Pure.
std::optional<WebUrl> parseWebUrl(const std::string& text);

}  // namespace jobq::image
