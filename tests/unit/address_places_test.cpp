// Tests of the connections counted by their peer's address (core/http/transport/address_places.h).
#include "core/http/transport/address_places.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>
#include <vector>

namespace jobq {
namespace {

sockaddr_storage peerAt(const std::string& address) {
  sockaddr_storage storage{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    std::memcpy(&storage, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    std::memcpy(&storage, &v6, sizeof v6);
  } else {
    ADD_FAILURE() << address << " is no address";
  }
  return storage;
}

TEST(AddressPlacesTest, EachAddressHasALimitedNumberOfPlaces) {
  AddressPlaces places(2);
  auto first = places.reserve(peerAt("192.0.2.1"));
  const auto second = places.reserve(peerAt("192.0.2.1"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(second);
  EXPECT_FALSE(places.reserve(peerAt("192.0.2.1")));
  EXPECT_TRUE(places.reserve(peerAt("192.0.2.2"))) << "a different address has free places";
  EXPECT_EQ(places.taken(), 2U);
  {
    const AddressPlaces::Place other = std::move(*first);
    first.reset();
    EXPECT_EQ(places.taken(), 2U) << "a moved place is still taken";
  }
  EXPECT_EQ(places.taken(), 1U);
  EXPECT_TRUE(places.reserve(peerAt("192.0.2.1")));
}

TEST(AddressPlacesTest, AnIpv6NetworkCountsAsAnAddressAndAMappedAddressAsIpv4) {
  AddressPlaces places(1);
  const auto network = places.reserve(peerAt("2001:db8:0:1::1"));
  EXPECT_FALSE(places.reserve(peerAt("2001:db8:0:1:ffff::2")));
  EXPECT_TRUE(places.reserve(peerAt("2001:db8:0:2::1")));
  const auto v4 = places.reserve(peerAt("192.0.2.1"));
  EXPECT_FALSE(places.reserve(peerAt("::ffff:192.0.2.1")));
  EXPECT_TRUE(places.reserve(peerAt("::ffff:192.0.2.2")));
}

TEST(AddressPlacesTest, WithoutALimitPlacesAreOnlyCounted) {
  AddressPlaces places(0);
  std::vector<AddressPlaces::Place> taken;
  for (int i = 0; i < 1'000; ++i) taken.push_back(places.reserve(peerAt("192.0.2.1")).value());
  EXPECT_EQ(places.taken(), 1'000U);
  taken.clear();
  EXPECT_EQ(places.taken(), 0U);
}

}  // namespace
}  // namespace jobq
