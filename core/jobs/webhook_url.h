// Decides whether a webhook URL may be stored and called later (core/decisions/webhooks.md). Pure functions; any
// thread.
//
// An accepted URL leads to the same host for every parser that a transport may use (libcurl, Poco, getaddrinfo). A URL
// that two parsers could understand differently is refused, because such a difference can bypass an address check. Host
// names are accepted without resolution; their addresses are checked at each connection (sdk/include/jobq/net_guard.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "jobq/net_guard.h"

namespace jobq {

struct WebhookRules {
  bool allowPrivate = false;                       ///< the setting `net.allowPrivate`
  std::set<std::string> schemes{"http", "https"};  ///< lower case; the schemes of the installed transports
};

inline constexpr std::size_t kMaxWebhookUrl = 8192;  ///< bytes

/// Target of an http or https URL.
struct WebUrl {
  std::string scheme;  ///< lower case
  std::string host;    ///< lower case, without a final dot; an address as inet_ntop writes it, without brackets
  std::uint16_t port = 0;
  net::AddressClass addressClass = net::AddressClass::open;  ///< of an address in any spelling; `open` for a name
};

/// Returns the parts of the URL. Fails with the fault and the remedy, to be read behind the name of a field.
Result<WebUrl> readWebUrl(std::string_view url);

/// Fails if a job with this URL is refused, with one sentence beginning with `field` and naming the remedy. http and
/// https URLs are checked completely, file URLs for a writable name; the rest of any other served scheme is left to its
/// transport.
Result<void> checkWebhook(std::string_view url, const WebhookRules& rules, std::string_view field = "webhook");

}  // namespace jobq
