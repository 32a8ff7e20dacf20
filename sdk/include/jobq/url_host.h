// Whose a URL is: the name under which deliveries to one receiver are counted (outbox_store.h). A pure function; it
// judges nothing, and what is no URL has a name too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace jobq {

/// The URL's authority without user and password, in lower case, with the port when one is written:
/// "hooks.example.com:8443". Of a URL without an authority ("file:///calls") its scheme; of a text without a scheme
/// the whole text.
inline std::string hostOf(std::string_view url) {
  const auto lower = [](std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
  };
  const std::size_t colon = url.find(':');
  const std::string_view scheme = url.substr(0, colon);
  if (colon == std::string_view::npos || !url.substr(colon).starts_with("://")) return lower(scheme);
  std::string_view authority = url.substr(colon + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  authority.remove_prefix(authority.rfind('@') + 1);  // npos + 1 is 0
  if (authority.ends_with(':')) authority.remove_suffix(1);
  return lower(authority.empty() ? scheme : authority);
}

}  // namespace jobq
