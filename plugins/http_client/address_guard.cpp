#include "address_guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace jobq::http_client {

namespace {

template <std::size_t kBytes>
std::optional<RefusedAddress> refusalOfBytes(int family, const void* bytes, bool allowPrivate) {
  std::array<std::uint8_t, kBytes> address{};
  std::memcpy(address.data(), bytes, kBytes);
  const net::AddressClass addressClass = net::classifyAddress(address);
  if (net::isAllowed(addressClass, allowPrivate)) return std::nullopt;
  char shown[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes, shown, sizeof shown);
  return RefusedAddress{shown, addressClass};
}

}  // namespace

std::optional<RefusedAddress> refusalOf(const sockaddr_storage& address, bool allowPrivate) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return refusalOfBytes<4>(AF_INET, &v4.sin_addr, allowPrivate);
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    return refusalOfBytes<16>(AF_INET6, &v6.sin6_addr, allowPrivate);
  }
  return RefusedAddress{};
}

std::string reasonOfRefusal(const RefusedAddress& refused) {
  if (refused.address.empty()) return "the address is neither IPv4 nor IPv6";
  if (refused.addressClass == net::AddressClass::forbidden) {
    return "the address " + refused.address + " is link-local, multicast or reserved, which is never allowed";
  }
  // The caller of a job must not learn the address of a name inside the operator's network.
  return "the address is private, which is allowed only with net.allowPrivate = true";
}

}  // namespace jobq::http_client
