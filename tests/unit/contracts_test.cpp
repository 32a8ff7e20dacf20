// Tests of the pure parts of the contracts: the table of state transitions, the classification of addresses.
#include <gtest/gtest.h>

#include "jobq/net_guard.h"
#include "jobq/transitions.h"

namespace {

using namespace jobq;

TEST(Transitions, TerminalStatesAreLeftOnlyByRetry) {
  for (const Transition& t : kTransitions) {
    if (terminal(t.from)) {
      EXPECT_EQ(t.trigger, Trigger::retry);
      EXPECT_TRUE(t.from == JobState::failed || t.from == JobState::timedOut);
    }
  }
}

TEST(Transitions, EachStateAndTriggerHaveAtMostASingleSuccessor) {
  for (const Transition& a : kTransitions) {
    int same = 0;
    for (const Transition& b : kTransitions) same += a.from == b.from && a.trigger == b.trigger;
    EXPECT_EQ(same, 1);
    EXPECT_EQ(next(a.from, a.trigger), a.to);
  }
  EXPECT_FALSE(next(JobState::completed, Trigger::retry));
  EXPECT_FALSE(next(JobState::inQueue, Trigger::complete));
}

std::array<std::uint8_t, 16> v6(std::initializer_list<int> head, std::initializer_list<int> tail = {}) {
  std::array<std::uint8_t, 16> a{};
  std::size_t i = 0;
  for (int byte : head) a[i++] = static_cast<std::uint8_t>(byte);
  i = 16 - tail.size();
  for (int byte : tail) a[i++] = static_cast<std::uint8_t>(byte);
  return a;
}

TEST(NetGuard, JudgesFourByteAddresses) {
  using net::AddressClass;
  const auto of = [](std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return net::classifyAddress(std::array<std::uint8_t, 4>{a, b, c, d});
  };
  EXPECT_EQ(of(8, 8, 8, 8), AddressClass::open);
  EXPECT_EQ(of(172, 15, 0, 1), AddressClass::open);
  EXPECT_EQ(of(172, 32, 0, 1), AddressClass::open);
  EXPECT_EQ(of(100, 63, 0, 1), AddressClass::open);
  EXPECT_EQ(of(127, 0, 0, 1), AddressClass::privateRange);
  EXPECT_EQ(of(10, 1, 2, 3), AddressClass::privateRange);
  EXPECT_EQ(of(172, 16, 0, 1), AddressClass::privateRange);
  EXPECT_EQ(of(192, 168, 0, 1), AddressClass::privateRange);
  EXPECT_EQ(of(100, 64, 0, 1), AddressClass::privateRange);
  EXPECT_EQ(of(0, 0, 0, 0), AddressClass::forbidden);
  EXPECT_EQ(of(169, 254, 169, 254), AddressClass::forbidden);
  EXPECT_EQ(of(224, 0, 0, 1), AddressClass::forbidden);
  EXPECT_EQ(of(255, 255, 255, 255), AddressClass::forbidden);
  EXPECT_EQ(of(198, 17, 255, 255), AddressClass::open);
  EXPECT_EQ(of(198, 18, 0, 1), AddressClass::privateRange);
  EXPECT_EQ(of(198, 19, 255, 255), AddressClass::privateRange);
  EXPECT_EQ(of(198, 20, 0, 0), AddressClass::open);
  EXPECT_EQ(of(192, 0, 0, 192), AddressClass::forbidden) << "a cloud's metadata";
  EXPECT_EQ(of(192, 0, 1, 0), AddressClass::open);
  EXPECT_EQ(of(192, 0, 2, 1), AddressClass::forbidden);
  EXPECT_EQ(of(198, 51, 100, 1), AddressClass::forbidden);
  EXPECT_EQ(of(198, 51, 101, 1), AddressClass::open);
  EXPECT_EQ(of(203, 0, 113, 1), AddressClass::forbidden);
  EXPECT_EQ(of(203, 0, 112, 255), AddressClass::open);
  EXPECT_EQ(of(100, 100, 100, 200), AddressClass::forbidden);
  EXPECT_EQ(of(100, 100, 100, 201), AddressClass::privateRange);
  EXPECT_EQ(of(168, 63, 129, 16), AddressClass::forbidden);
}

TEST(NetGuard, JudgesSixteenByteAddressesByTheEmbeddedAddress) {
  using net::AddressClass;
  EXPECT_EQ(net::classifyAddress(v6({0x26, 0x06}, {1})), AddressClass::open);
  EXPECT_EQ(net::classifyAddress(v6({}, {1})), AddressClass::privateRange);
  EXPECT_EQ(net::classifyAddress(v6({})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0xfe, 0x80}, {1})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0xff, 0x02}, {1})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0xfd}, {1})), AddressClass::privateRange);
  EXPECT_EQ(net::classifyAddress(v6({0xfd, 0, 0x0e, 0xc2}, {2, 0x54})), AddressClass::forbidden)
      << "a cloud's metadata";
  EXPECT_EQ(net::classifyAddress(v6({0xfd, 0, 0x0e, 0xc3}, {1})), AddressClass::privateRange);
  EXPECT_EQ(net::classifyAddress(v6({0x20, 0x01, 0, 0, 127, 0, 0, 1}, {1})), AddressClass::forbidden) << "Teredo";
  EXPECT_EQ(net::classifyAddress(v6({0x20, 0x01, 2}, {1})), AddressClass::open);
  EXPECT_EQ(net::classifyAddress(v6({0x20, 0x01, 0x0d, 0xb8}, {1})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0x3f, 0xff, 0x0f}, {1})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0x3f, 0xff, 0x10}, {1})), AddressClass::open);
  EXPECT_EQ(net::classifyAddress(v6({}, {0xff, 0xff, 169, 254, 169, 254})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({}, {0xff, 0xff, 127, 0, 0, 1})), AddressClass::privateRange);
  EXPECT_EQ(net::classifyAddress(v6({}, {0xff, 0xff, 8, 8, 8, 8})), AddressClass::open);
  EXPECT_EQ(net::classifyAddress(v6({0, 0x64, 0xff, 0x9b}, {10, 0, 0, 1})), AddressClass::privateRange);
  EXPECT_EQ(net::classifyAddress(v6({0, 0x64, 0xff, 0x9b}, {169, 254, 1, 1})), AddressClass::forbidden);
  EXPECT_EQ(net::classifyAddress(v6({0x20, 0x02, 127, 0, 0, 1})), AddressClass::privateRange);
}

TEST(NetGuard, PrivateAddressesNeedPermission) {
  EXPECT_TRUE(net::isAllowed(net::AddressClass::open, false));
  EXPECT_FALSE(net::isAllowed(net::AddressClass::privateRange, false));
  EXPECT_TRUE(net::isAllowed(net::AddressClass::privateRange, true));
  EXPECT_FALSE(net::isAllowed(net::AddressClass::forbidden, true));
}

}  // namespace
