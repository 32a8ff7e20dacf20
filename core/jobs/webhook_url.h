// Room 4 (reception): may this URL be kept, and called later? (core/decisions/webhooks.md.) Pure, any thread.
//
// What is accepted here leads to the same host in the eyes of every reader that a transport may use (libcurl, Poco,
// getaddrinfo): what two of them could understand differently is refused, because an address check can be gone round
// there. Names are accepted unseen; they are judged at each connection (jobq/net_guard.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "jobq/net_guard.h"

namespace jobq {

struct WebhookRules {
  bool allowPrivate = false;                       ///< `net.allowPrivate`
  std::set<std::string> schemes{"http", "https"};  ///< lower case: what the installed transports serve
};

inline constexpr std::size_t kMaxWebhookUrl = 8192;  ///< bytes

/// Where an http or https URL leads.
struct WebUrl {
  std::string scheme;  ///< lower case
  std::string host;    ///< lower case, without a dot at its end; an address as inet_ntop writes it, without brackets
  std::uint16_t port = 0;
  net::AddressClass reach = net::AddressClass::open;  ///< of a literal address, however it is spelled; a name's is open
};

/// The URL taken apart; or what is wrong with it and the remedy, to be read behind the name of a field.
std::variant<WebUrl, std::string> readWebUrl(std::string_view url);

/// Why a job with this URL is refused: one sentence that begins with `field` and names the remedy; nothing when it is
/// accepted. http and https are read as web URLs; of another scheme that is served, the rest is its transport's affair.
std::optional<std::string> webhookFault(const std::string& url, const WebhookRules& rules,
                                        std::string_view field = "webhook");

}  // namespace jobq
