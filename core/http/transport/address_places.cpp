#include "core/http/transport/address_places.h"

#include <netinet/in.h>

#include <cstring>

namespace jobq {

std::optional<AddressPlaces::Place> AddressPlaces::reserve(const sockaddr_storage& peer) {
  const PeerAddress address = addressOf(peer);
  Lock lock(mutex_);
  if (most_ > 0) {
    std::size_t& here = byAddress_[address];
    if (here >= most_) return std::nullopt;
    ++here;
  }
  ++taken_;
  return Place(*this, address);
}

std::size_t AddressPlaces::taken() const {
  Lock lock(mutex_);
  return taken_;
}

PeerAddress AddressPlaces::addressOf(const sockaddr_storage& peer) noexcept {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof v4);
    return {AF_INET, v4.sin_addr.s_addr};
  }
  if (peer.ss_family != AF_INET6) return {peer.ss_family, 0};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &peer, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    std::uint32_t v4 = 0;
    std::memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
    return {AF_INET, v4};
  }
  std::uint64_t network = 0;
  std::memcpy(&network, v6.sin6_addr.s6_addr, sizeof network);
  return {AF_INET6, network};
}

void AddressPlaces::release(const PeerAddress& address) noexcept {
  Lock lock(mutex_);
  --taken_;
  const auto here = byAddress_.find(address);
  if (here != byAddress_.end() && --here->second == 0) byAddress_.erase(here);
}

}  // namespace jobq
