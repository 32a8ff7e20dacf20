// Which socket addresses a webhook may be sent to: the rules of jobq/net_guard.h, put to the address that is about to
// be connected to. However a URL spells it, a name, 0x7f.1 or ::ffff:127.0.0.1, it ends here as bytes.
#pragma once

#include <sys/socket.h>

#include <string>

namespace jobq::webhook_http {

/// Why the address must not be connected to, as a clause with the remedy; empty when it may. Pure.
std::string refusalOf(const sockaddr_storage& address, bool allowPrivate);

}  // namespace jobq::webhook_http
