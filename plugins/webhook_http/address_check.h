// The check of socket addresses of webhooks: the rules of `jobq/net_guard.h`, applied to the address just before the
// connection. All spellings in a URL, such as a name, 0x7f.1 or ::ffff:127.0.0.1, arrive here as bytes.
#pragma once

#include <sys/socket.h>

#include <string>

namespace jobq::webhook_http {

/// Returns an empty text if the address may be connected to, or the reason of the refusal as a clause with the remedy.
/// Pure.
std::string refusalOf(const sockaddr_storage& address, bool allowPrivate);

}  // namespace jobq::webhook_http
