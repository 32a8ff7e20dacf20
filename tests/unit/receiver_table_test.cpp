// Tests of the places for deliveries: the hosts that receive a place, and the growing and shrinking part of a host
// (core/webhooks/receiver_table.h).
#include "core/webhooks/receiver_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <ostream>

namespace jobq {

void PrintTo(const HostPlaces& each, std::ostream* out) { *out << each.host << ": " << each.places; }

namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

auto places(const std::string& host, std::size_t count) {
  return AllOf(Field(&HostPlaces::host, host), Field(&HostPlaces::places, count));
}

class ReceiverTableTest : public testing::Test {
 protected:
  /// Ends `calls` calls to the host successfully, in sequence.
  void answer(const std::string& host, std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      table_.begin(host, 0);
      table_.end(host, 0, CallEnd::answered);
    }
  }
  void begin(const std::string& host, std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) table_.begin(host, 0);
  }
  /// Returns how many due deliveries the host may begin while no other host has due deliveries.
  std::size_t allowed(const std::string& host) {
    const auto shared = table_.placesFor({host});
    return shared.empty() ? 0 : shared[0].places;
  }
  static std::vector<std::string> hosts(const std::string& name, std::size_t count) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(name + std::to_string(i));
    return all;
  }

  ReceiverTable table_;
};

TEST_F(ReceiverTableTest, AnUnknownHostHasASinglePlace) {
  EXPECT_THAT(table_.placesFor({"a", "b"}), ElementsAre(places("a", 1), places("b", 1)));
  table_.begin("a", 0);
  EXPECT_THAT(table_.placesFor({"a", "b"}), ElementsAre(places("b", 1)));
  EXPECT_THAT(table_.placesFor({}), IsEmpty());
}

TEST_F(ReceiverTableTest, EachAnswerAddsAPlaceUpToABound) {
  for (std::size_t most = 2; most <= kPlacesPerHost; ++most) {
    answer("a", 1);
    EXPECT_EQ(allowed("a"), most);
  }
  answer("a", 1);
  EXPECT_EQ(allowed("a"), kPlacesPerHost);
}

TEST_F(ReceiverTableTest, SeveralNodesShareThePlacesOfAHost) {
  answer("a", kPlacesPerHost);
  EXPECT_EQ(allowed("a"), kPlacesPerHost);
  table_.setNodes(3);
  EXPECT_EQ(allowed("a"), kPlacesPerHost / 3) << "the share also bounds the places of before";
  for (int i = 0; i < 20; ++i) {
    table_.begin("late", 0);
    table_.end("late", 0, CallEnd::answeredLate);
  }
  EXPECT_EQ(allowed("late"), kPlacesPerLateHost / 3);
  table_.setNodes(1'000);
  EXPECT_EQ(allowed("a"), 1U) << "no host is left out";
  table_.setNodes(1);
  answer("a", kPlacesPerHost);
  EXPECT_EQ(allowed("a"), kPlacesPerHost);
}

TEST_F(ReceiverTableTest, AnUnansweredCallLeavesOnlyOnePlaceUntilAnAnswer) {
  answer("a", 9);
  begin("a", 2);
  table_.end("a", 0, CallEnd::timedOut);
  EXPECT_EQ(allowed("a"), 0U) << "the call in hand uses the only place";
  table_.end("a", 0, CallEnd::timedOut);
  EXPECT_EQ(allowed("a"), 1U);
  answer("a", 1);
  EXPECT_EQ(allowed("a"), 2U);
}

TEST_F(ReceiverTableTest, AnImmediateFailureChangesNothing) {
  answer("a", 3);
  begin("a", 1);
  table_.end("a", 0, CallEnd::unknown);
  EXPECT_EQ(allowed("a"), 4U);
}

TEST_F(ReceiverTableTest, ALateAnsweringHostHasASmallerPart) {
  for (int i = 0; i < 20; ++i) {
    table_.begin("late", 0);
    table_.end("late", 0, CallEnd::answeredLate);
  }
  EXPECT_EQ(allowed("late"), kPlacesPerLateHost);
  answer("was prompt", 40);
  table_.begin("was prompt", 0);
  table_.end("was prompt", 0, CallEnd::answeredLate);
  EXPECT_EQ(allowed("was prompt"), kPlacesPerLateHost);
}

TEST_F(ReceiverTableTest, UnknownHostsLeavePlacesToAnsweringHosts) {
  for (const char* host : {"good", "fine"}) answer(host, kPlacesPerHost);
  for (const std::string& host : hosts("hangs", 100)) {
    for (const HostPlaces& shared : table_.placesFor({host})) begin(host, shared.places);
  }
  EXPECT_THAT(table_.placesFor({"new"}), IsEmpty()) << "the places for unknown hosts are taken";
  std::size_t left = 0;
  for (const HostPlaces& each : table_.placesFor({"good", "fine"})) left += each.places;
  EXPECT_EQ(left, kPlaces - kPlacesForOthers);
  table_.end("hangs7", 0, CallEnd::timedOut);
  EXPECT_THAT(table_.placesFor({"hangs7", "new"}), ElementsAre(places("new", 1)))
      << "the turn of the host is the longest ago";
}

TEST_F(ReceiverTableTest, APlaceGoesToTheHostWithTheFewestInHand) {
  for (const char* host : {"a", "b", "c"}) answer(host, kPlacesPerHost);
  begin("a", 300);
  begin("b", 150);
  const std::size_t left = kPlaces - 450;
  EXPECT_THAT(table_.placesFor({"a", "b", "c"}), ElementsAre(places("c", left)));
  begin("c", left - 1);
  EXPECT_THAT(table_.placesFor({"a", "b", "c"}), ElementsAre(places("c", 1)));
}

TEST_F(ReceiverTableTest, TwoHostsWithoutAnEndShareThePlaces) {
  for (const char* host : {"a", "b"}) answer(host, kPlacesPerHost);
  EXPECT_THAT(table_.placesFor({"a", "b"}), ElementsAre(places("a", kPlaces / 2), places("b", kPlaces / 2)));
  for (const char* host : {"c", "d", "e"}) answer(host, kPlacesPerHost);
  std::size_t all = 0;
  for (const HostPlaces& each : table_.placesFor({"a", "b", "c", "d", "e"})) {
    EXPECT_GE(each.places, kPlaces / 5);
    EXPECT_LE(each.places, kPlaces / 5 + 1);
    all += each.places;
  }
  EXPECT_EQ(all, kPlaces);
}

// An oldest-first order fails here: one place is free at a time, and more hosts wait than places exist.
TEST_F(ReceiverTableTest, HostsBeyondThePlacesHaveTurns) {
  const auto all = hosts("h", 600);
  for (const std::string& host : all) answer(host, 1);
  std::map<std::string, int> served;
  std::vector<std::string> inUse;
  for (int round = 0; round < 2'500; ++round) {
    for (const HostPlaces& each : table_.placesFor(all)) {
      for (std::size_t i = 0; i < each.places; ++i) {
        table_.begin(each.host, 0);
        inUse.push_back(each.host);
        ++served[each.host];
      }
    }
    EXPECT_EQ(inUse.size(), kPlaces);
    table_.end(inUse.front(), 0, CallEnd::answered);
    inUse.erase(inUse.begin());
  }
  for (const std::string& host : all) {
    EXPECT_GE(served[host], 5) << host;
    EXPECT_LE(served[host], 6) << host;
  }
}

// Host names cost a sender no effort: a stream of new names must not keep the last place from a waiting host.
TEST_F(ReceiverTableTest, EverNewNamesDoNotGoBeforeAWaitingHost) {
  for (const std::string& host : hosts("hangs", kPlacesForOthers - 1)) begin(host, 1);
  for (const bool isKnown : {false, true}) {
    if (isKnown) {
      table_.begin("z", 0);
      table_.end("z", 0, CallEnd::answeredLate);
      for (std::uint64_t i = 0; i < kOldTurn; ++i) answer("another", 1);
    }
    bool isServed = false;
    for (int round = 0; round < 300 && !isServed; ++round) {
      std::vector<std::string> waiting = hosts("a" + std::to_string(round) + "-", 10);
      waiting.emplace_back("z");
      const auto shared = table_.placesFor(waiting);
      ASSERT_EQ(shared.size(), 1U) << "a single place is left";
      isServed = shared[0].host == "z";
      begin(shared[0].host, 1);
      table_.end(shared[0].host, 0, CallEnd::timedOut);
    }
    EXPECT_TRUE(isServed) << (isKnown ? "known" : "unknown");
  }
}

TEST_F(ReceiverTableTest, BytesInHandAreBounded) {
  answer("good", 1);
  table_.begin("hangs", kBytesForOthers);
  EXPECT_THAT(table_.placesFor({"new"}), IsEmpty());
  EXPECT_EQ(allowed("good"), 2U);
  table_.begin("good", kBytesInHand - kBytesForOthers);
  EXPECT_EQ(allowed("good"), 0U);
  EXPECT_FALSE(table_.hasPlaces());
  table_.end("hangs", kBytesForOthers, CallEnd::unknown);
  EXPECT_THAT(table_.placesFor({"new"}), ElementsAre(places("new", 1)));
}

TEST_F(ReceiverTableTest, ClaimedDeliveriesChangeSidesWithTheHost) {
  begin("a", 1);
  table_.end("a", 0, CallEnd::answered);
  begin("a", 2);
  table_.end("a", 0, CallEnd::timedOut);  // the remaining call counts among the calls that may hang
  for (const std::string& host : hosts("hangs", kPlacesForOthers - 1)) begin(host, 1);
  EXPECT_THAT(table_.placesFor({"new"}), IsEmpty());
  table_.end("a", 0, CallEnd::answered);
  EXPECT_THAT(table_.placesFor({"new"}), ElementsAre(places("new", 1)));
}

// A process with few descriptors has fewer places.
TEST_F(ReceiverTableTest, FewPlacesAreSharedInTheSameWay) {
  ReceiverTable few(64);
  for (const char* host : {"a", "b"}) {
    for (std::size_t i = 0; i < kPlacesPerHost; ++i) {
      few.begin(host, 0);
      few.end(host, 0, CallEnd::answered);
    }
  }
  EXPECT_THAT(few.placesFor({"a"}), ElementsAre(places("a", 48)));
  EXPECT_THAT(few.placesFor({"a", "b"}), ElementsAre(places("a", 32), places("b", 32)));
  for (const std::string& host : hosts("hangs", 100)) {
    for (const HostPlaces& shared : few.placesFor({host})) few.begin(host, shared.places);
  }
  EXPECT_THAT(few.placesFor({"a", "new"}), ElementsAre(places("a", 16)));
  ReceiverTable one(0);
  EXPECT_THAT(one.placesFor({"new", "other"}), testing::SizeIs(1)) << "no delivery would be made otherwise";
}

TEST_F(ReceiverTableTest, TheNumberOfKnownHostsIsBounded) {
  answer("kept", 9);
  begin("kept", 1);
  answer("forgotten", 9);
  for (const std::string& host : hosts("h", kKnownHosts)) answer(host, 1);
  EXPECT_EQ(allowed("kept"), 9U) << "the host has a delivery in hand";
  EXPECT_EQ(allowed("forgotten"), 1U);
}

}  // namespace
}  // namespace jobq
