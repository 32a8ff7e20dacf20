#include "address_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>

#include "jobq/net_guard.h"

namespace jobq::webhook_http {

namespace {

template <std::size_t kBytes>
std::string refusalOfBytes(int family, const void* bytes, bool allowPrivate) {
  std::array<std::uint8_t, kBytes> address{};
  std::memcpy(address.data(), bytes, kBytes);
  const net::AddressClass reach = net::classifyAddress(address);
  if (net::isAllowed(reach, allowPrivate)) return {};
  char shown[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes, shown, sizeof shown);
  return std::string("the address ") + shown +
         (reach == net::AddressClass::forbidden ? " is link-local, multicast or reserved, which is never allowed"
                                                : " is private, which is allowed only with net.allowPrivate = true");
}

}  // namespace

std::string refusalOf(const sockaddr_storage& address, bool allowPrivate) {
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
  return "the address is neither IPv4 nor IPv6";
}

}  // namespace jobq::webhook_http
