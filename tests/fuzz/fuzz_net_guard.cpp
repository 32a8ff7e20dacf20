// The classification of addresses against a table of networks, where the longest prefix decides. An input selects a
// network of the table to lie in or beside, and an address with bits for the open part of the network.
#include <arpa/inet.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "check.h"
#include "jobq/net_guard.h"

namespace {

using namespace jobq::net;

/// Classified by the IPv4 address inside, which begins at this byte.
enum class Inside { none = -1, second = 2, last = 12 };

struct Network {
  const char* first;
  std::size_t bits;
  AddressClass addressClass;
  Inside inside = Inside::none;
};

constexpr Network kIpv4[] = {
    {"0.0.0.0", 0, AddressClass::open},
    {"0.0.0.0", 8, AddressClass::forbidden},           // "this" network
    {"10.0.0.0", 8, AddressClass::privateRange},       // RFC 1918
    {"100.64.0.0", 10, AddressClass::privateRange},    // RFC 6598
    {"100.100.100.200", 32, AddressClass::forbidden},  // a cloud's metadata
    {"127.0.0.0", 8, AddressClass::privateRange},      // loopback
    {"168.63.129.16", 32, AddressClass::forbidden},    // a cloud's metadata
    {"169.254.0.0", 16, AddressClass::forbidden},      // link-local
    {"172.16.0.0", 12, AddressClass::privateRange},    // RFC 1918
    {"192.0.0.0", 24, AddressClass::forbidden},        // protocol assignments
    {"192.0.2.0", 24, AddressClass::forbidden},        // documentation
    {"192.168.0.0", 16, AddressClass::privateRange},   // RFC 1918
    {"198.18.0.0", 15, AddressClass::privateRange},    // benchmarks
    {"198.51.100.0", 24, AddressClass::forbidden},     // documentation
    {"203.0.113.0", 24, AddressClass::forbidden},      // documentation
    {"224.0.0.0", 4, AddressClass::forbidden},         // multicast
    {"240.0.0.0", 4, AddressClass::forbidden},         // reserved, broadcast
};

constexpr Network kIpv6[] = {
    {"::", 0, AddressClass::open},
    {"::", 96, AddressClass::forbidden},                   // unspecified, IPv4-compatible
    {"::1", 128, AddressClass::privateRange},              // loopback
    {"::ffff:0:0", 96, AddressClass::open, Inside::last},  // IPv4-mapped
    {"64:ff9b::", 32, AddressClass::forbidden},            // local NAT64 and its neighbours
    {"64:ff9b::", 96, AddressClass::open, Inside::last},   // NAT64
    {"2001::", 23, AddressClass::forbidden},               // Teredo and other assignments
    {"2001:db8::", 32, AddressClass::forbidden},           // documentation
    {"2002::", 16, AddressClass::open, Inside::second},    // 6to4
    {"3fff::", 20, AddressClass::forbidden},               // documentation
    {"fc00::", 7, AddressClass::privateRange},             // unique local
    {"fd00:ec2::", 32, AddressClass::forbidden},           // a cloud's metadata
    {"fe80::", 10, AddressClass::forbidden},               // link-local
    {"fec0::", 10, AddressClass::forbidden},               // site-local
    {"ff00::", 8, AddressClass::forbidden},                // multicast
};

template <std::size_t kBytes>
using Address = std::array<std::uint8_t, kBytes>;

template <std::size_t kBytes>
bool bitOf(const Address<kBytes>& address, std::size_t bit) {
  return (address[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

template <std::size_t kBytes>
Address<kBytes> firstOf(const Network& network) {
  Address<kBytes> address{};
  BELIEVE(inet_pton(kBytes == 4 ? AF_INET : AF_INET6, network.first, address.data()) == 1);
  return address;
}

template <std::size_t kBytes>
bool contains(const Network& network, const Address<kBytes>& address) {
  const auto first = firstOf<kBytes>(network);
  for (std::size_t bit = 0; bit < network.bits; ++bit) {
    if (bitOf(first, bit) != bitOf(address, bit)) return false;
  }
  return true;
}

template <std::size_t kBytes, std::size_t kCount>
AddressClass lookUp(const Address<kBytes>& address, const Network (&table)[kCount]) {
  const Network* best = &table[0];
  for (const Network& network : table) {
    if (network.bits > best->bits && contains(network, address)) best = &network;
  }
  if (best->inside == Inside::none) return best->addressClass;
  Address<4> ipv4{};
  std::memcpy(ipv4.data(), address.data() + static_cast<int>(best->inside), ipv4.size());
  return lookUp(ipv4, kIpv4);
}

/// Returns the network's first bits followed by `bits`. Bit `flip` of the network is turned, so that neighbours are
/// tested.
template <std::size_t kBytes>
Address<kBytes> within(const Network& network, const std::uint8_t* bits, std::size_t flip) {
  Address<kBytes> address = firstOf<kBytes>(network);
  for (std::size_t bit = network.bits; bit < 8 * kBytes; ++bit) {
    const std::uint8_t mask = static_cast<std::uint8_t>(0x80 >> bit % 8);
    address[bit / 8] = static_cast<std::uint8_t>((address[bit / 8] & ~mask) | (bits[bit / 8] & mask));
  }
  if (flip < network.bits) address[flip / 8] ^= static_cast<std::uint8_t>(0x80 >> flip % 8);
  return address;
}

template <std::size_t kBytes, std::size_t kCount>
void compare(const std::uint8_t* data, const Network (&table)[kCount]) {
  Address<kBytes> plain{};
  std::memcpy(plain.data(), data + 2, kBytes);
  for (const auto& address : {plain, within<kBytes>(table[data[0] % kCount], data + 2, data[1])}) {
    const AddressClass addressClass = jobq::net::classifyAddress(address);
    BELIEVE(addressClass == lookUp(address, table));
    BELIEVE(isAllowed(addressClass, false) == (addressClass == AddressClass::open));
    BELIEVE(isAllowed(addressClass, true) == (addressClass != AddressClass::forbidden));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size >= 2 + 4) compare<4>(data, kIpv4);
  if (size >= 2 + 16) compare<16>(data, kIpv6);
  return 0;
}
