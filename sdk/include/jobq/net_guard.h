// Rules about the addresses to which jobq may connect on behalf of a caller (core/decisions/webhooks.md). The functions
// judge the address of the socket, so no name, redirect or DNS rebinding bypasses the rules. A caller applies the rules
// to every connection, including connections of redirects, in the hook that sees the socket address (for libcurl
// CURLOPT_OPENSOCKETFUNCTION). The functions are pure: any thread, no exception, no I/O.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace jobq::net {

/// Reachability class of an address.
enum class AddressClass {
  open,          ///< the public internet: always allowed
  privateRange,  ///< loopback, private, 100.64/10, 198.18/15, fc00::/7: allowed only with `net.allowPrivate = true`
  forbidden,  ///< link-local, 0/8, multicast, broadcast, reserved, documentation, Teredo, cloud metadata: never allowed
};

/// Returns the class of an IPv4 address. `a` is in network byte order, as in sockaddr_in.
constexpr AddressClass classifyAddress(const std::array<std::uint8_t, 4>& a) noexcept {
  if (a[0] == 0 || a[0] >= 224) return AddressClass::forbidden;    // this network; multicast, reserved, broadcast
  if (a[0] == 169 && a[1] == 254) return AddressClass::forbidden;  // link-local, with the metadata services of clouds
  // Metadata services of clouds at addresses that are not link-local.
  if (a[0] == 100 && a[1] == 100 && a[2] == 100 && a[3] == 200) return AddressClass::forbidden;
  if (a[0] == 168 && a[1] == 63 && a[2] == 129 && a[3] == 16) return AddressClass::forbidden;
  if (a[0] == 192 && a[1] == 0 && (a[2] == 0 || a[2] == 2))
    return AddressClass::forbidden;                                              // 192.0.0/24, documentation
  if (a[0] == 198 && a[1] == 51 && a[2] == 100) return AddressClass::forbidden;  // documentation
  if (a[0] == 203 && a[1] == 0 && a[2] == 113) return AddressClass::forbidden;   // documentation
  if (a[0] == 127 || a[0] == 10) return AddressClass::privateRange;
  if (a[0] == 172 && a[1] >= 16 && a[1] <= 31) return AddressClass::privateRange;
  if (a[0] == 192 && a[1] == 168) return AddressClass::privateRange;
  if (a[0] == 100 && a[1] >= 64 && a[1] <= 127) return AddressClass::privateRange;  // carrier-grade NAT
  if (a[0] == 198 && (a[1] & 0xfe) == 18) return AddressClass::privateRange;  // benchmarks between private networks
  return AddressClass::open;
}

/// Returns the class of an IPv6 address. `a` is in network byte order, as in sockaddr_in6. An IPv6 address with an
/// embedded IPv4 address (IPv4-mapped, NAT64, 6to4) has the class of the IPv4 address.
constexpr AddressClass classifyAddress(const std::array<std::uint8_t, 16>& a) noexcept {
  const auto zero = [&a](int from, int to) {
    return std::all_of(a.begin() + from, a.begin() + to, [](std::uint8_t byte) { return byte == 0; });
  };
  const auto v4 = [&a](int at) {
    const auto i = static_cast<std::size_t>(at);
    return classifyAddress(std::array<std::uint8_t, 4>{a[i], a[i + 1], a[i + 2], a[i + 3]});
  };
  if (zero(0, 15) && a[15] == 1) return AddressClass::privateRange;  // ::1
  if (zero(0, 10) && a[10] == 0xff && a[11] == 0xff) return v4(12);  // ::ffff:0:0/96, IPv4-mapped
  if (zero(0, 12)) return AddressClass::forbidden;                   // ::, IPv4-compatible (obsolete)
  if (a[0] == 0 && a[1] == 0x64 && a[2] == 0xff && a[3] == 0x9b) {
    if (zero(4, 12)) return v4(12);  // 64:ff9b::/96, NAT64
    return AddressClass::forbidden;  // 64:ff9b:1::/48, local NAT64
  }
  if (a[0] == 0x20 && a[1] == 0x02) return v4(2);  // 2002::/16, 6to4
  if (a[0] == 0x20 && a[1] == 0x01) {
    if (a[2] < 0x02) return AddressClass::forbidden;                   // 2001::/23, Teredo and other assignments
    if (a[2] == 0x0d && a[3] == 0xb8) return AddressClass::forbidden;  // 2001:db8::/32, documentation
  }
  if (a[0] == 0x3f && a[1] == 0xff && a[2] < 0x10) return AddressClass::forbidden;  // 3fff::/20, documentation
  if (a[0] == 0xfd && a[1] == 0 && a[2] == 0x0e && a[3] == 0xc2)
    return AddressClass::forbidden;                                           // fd00:ec2::/32, metadata
  if (a[0] == 0xff) return AddressClass::forbidden;                           // multicast
  if (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) return AddressClass::forbidden;  // fe80::/10, link-local
  if (a[0] == 0xfe && (a[1] & 0xc0) == 0xc0) return AddressClass::forbidden;  // fec0::/10, site-local (obsolete)
  if ((a[0] & 0xfe) == 0xfc) return AddressClass::privateRange;               // fc00::/7
  return AddressClass::open;
}

/// Returns true if a connection to an address of the class `addressClass` is permitted. `allowPrivate` is the setting
/// `net.allowPrivate`, which a plugin finds in PluginEnv::allowPrivateAddresses.
constexpr bool isAllowed(AddressClass addressClass, bool allowPrivate) noexcept {
  return addressClass == AddressClass::open || (addressClass == AddressClass::privateRange && allowPrivate);
}

}  // namespace jobq::net
