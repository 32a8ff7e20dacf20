// The address guard of outbound connections: the rules of `jobq/net_guard.h`, applied to the address just before the
// connection. All spellings in a URL, such as a name, 0x7f.1 or ::ffff:127.0.0.1, arrive here as bytes.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>

#include "jobq/net_guard.h"

namespace jobq::http_client {

/// An address to which the rules permit no connection.
struct RefusedAddress {
  std::string address;  ///< as inet_ntop() writes it; empty if the address is neither IPv4 nor IPv6
  net::AddressClass addressClass = net::AddressClass::forbidden;
};

/// Returns the refused address, or no value if a connection to the address is permitted. `allowPrivate` is the setting
/// `net.allowPrivate`. Pure; any thread.
std::optional<RefusedAddress> refusalOf(const sockaddr_storage& address, bool allowPrivate);

/// Returns the reason of the refusal as a clause with the setting that permits the address, if there is one. Pure; any
/// thread.
std::string reasonOfRefusal(const RefusedAddress& refused);

}  // namespace jobq::http_client
