// The bytes of one plain connection, and how long a slow client may take (core/http/link.h).
#include "core/http/link.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "core/http/budget.h"
#include "core/http/inbox.h"
#include "socket_pair.h"

namespace jobq {
namespace {

class LinkTest : public testing::Test {
 protected:
  std::optional<std::size_t> read(Link::Wait wait = Link::Wait::no) {
    return client_.link().read(bytes_.data(), bytes_.size(), wait);
  }
  std::string bytes(std::size_t size) const { return {bytes_.data(), size}; }

  test::SocketPair client_;
  Budget places_{8};
  std::array<char, 64> bytes_{};
};

TEST_F(LinkTest, TellsNothingYetFromTheEnd) {
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(read(Link::Wait::linger), std::nullopt) << "the wait has an end";
  client_.send("abc");
  ASSERT_EQ(read(), 3U);
  EXPECT_EQ(bytes(3), "abc");
  client_.send("d");
  client_.endSending();
  EXPECT_EQ(read(), 1U) << "bytes in front of the end are not lost";
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(read(Link::Wait::linger), 0U);
}

TEST_F(LinkTest, WritesBothTextsInTheirOrder) {
  EXPECT_TRUE(client_.link().write("head,", "body", Pace(places_)));
  EXPECT_TRUE(client_.link().write("", "alone", Pace(places_)));
  EXPECT_TRUE(client_.link().write("", "", Pace(places_)));
  EXPECT_EQ(client_.received(), "head,bodyalone");
}

TEST_F(LinkTest, WritesMoreThanTheSocketHolds) {
  const std::string large(4UL << 20, 'x');
  auto writing = std::async(std::launch::async, [&] { return client_.link().write("head", large, Pace(places_)); });
  std::string got;
  ASSERT_TRUE(std::async(std::launch::async,
                         [&] {
                           const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                           while (got.size() < large.size() + 4 && std::chrono::steady_clock::now() < end)
                             got += client_.received();
                           return got.size() == large.size() + 4;
                         })
                  .get())
      << "only " << got.size() << " bytes came";
  EXPECT_TRUE(writing.get());
  EXPECT_TRUE(got.starts_with("headx"));
  EXPECT_EQ(places_.left(), 8U) << "a place that was taken is given back";
}

TEST_F(LinkTest, AWriteToAClientThatHasGoneFails) {
  client_.hangUp();
  EXPECT_FALSE(client_.link().write("head", "body", Pace(places_)));
}

TEST_F(LinkTest, AHurriedWriteGivesUpWhereItWouldHaveToWait) {
  const std::string large(4UL << 20, 'x');
  EXPECT_FALSE(client_.link().write("head", large, Pace::hurried()));
  EXPECT_FALSE(client_.received().empty()) << "what fits has left";
}

TEST_F(LinkTest, ShutDownEndsAReadOfAnotherThread) {
  auto reading = std::async(std::launch::async, [this] {
    std::optional<std::size_t> got;
    while (!(got = read(Link::Wait::linger))) {
    }
    return *got;
  });
  client_.link().shutDown();
  ASSERT_EQ(reading.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "the read did not end";
  EXPECT_EQ(reading.get(), 0U);
}

TEST_F(LinkTest, EndSendingLetsTheClientGoOn) {
  client_.link().endSending();
  EXPECT_EQ(client_.received(), "");
  EXPECT_TRUE(client_.sawEnd());
  client_.send("more");
  EXPECT_EQ(read(), 4U);
}

TEST_F(LinkTest, DropTellsNothingYetFromTheEndToo) {
  EXPECT_EQ(client_.link().drop(bytes_.data(), bytes_.size()), std::nullopt);
  client_.send("abc");
  EXPECT_EQ(client_.link().drop(bytes_.data(), bytes_.size()), 3U);
  client_.endSending();
  EXPECT_EQ(client_.link().drop(bytes_.data(), bytes_.size()), 0U);
}

TEST_F(LinkTest, ADroppedConnectionClosesItsDescriptor) {
  auto link = client_.takeLink();
  const int descriptor = link->descriptor();
  EXPECT_GE(::fcntl(descriptor, F_GETFD), 0);
  link.reset();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

TEST(PaceTest, AllowsASecondMoreForEach8KiBThatMoved) {
  Budget places(1);
  Pace pace(places);
  EXPECT_LE(pace.left(), std::chrono::seconds(20));
  EXPECT_GT(pace.left(), std::chrono::seconds(10));
  pace.moved(8'191);
  EXPECT_LE(pace.left(), std::chrono::seconds(20));
  pace.moved(100UL * 8'192);
  EXPECT_GT(pace.left(), std::chrono::seconds(100));
  EXPECT_LE(pace.left(), std::chrono::seconds(120));
}

TEST(PaceTest, TakesNoPlaceAtOnceAndAsksAgainWithinASecond) {
  Budget places(0);
  Pace pace(places);
  EXPECT_LE(pace.untilNextQuestion(), std::chrono::seconds(1));
  EXPECT_GT(pace.untilNextQuestion(), std::chrono::seconds(0));
  EXPECT_EQ(Pace::hurried().mayWait(), Pace::Verdict::late);
}

TEST(BudgetTest, AShareGoesBackWithItsOwner) {
  Budget budget(10);
  {
    auto share = budget.take(6);
    ASSERT_TRUE(share);
    EXPECT_EQ(budget.left(), 4U);
    EXPECT_FALSE(budget.take(5)) << "there is not that much left";
    EXPECT_FALSE(share->grow(budget, 5));
    EXPECT_EQ(share->amount(), 6U);
    ASSERT_TRUE(share->grow(budget, 4));
    Budget::Share other = std::move(*share);
    EXPECT_EQ(other.amount(), 10U);
    EXPECT_EQ(budget.left(), 0U);
    other.giveBack();
    EXPECT_EQ(budget.left(), 10U);
    other.giveBack();
    EXPECT_EQ(budget.left(), 10U) << "once";
  }
  EXPECT_EQ(budget.left(), 10U);
}

TEST(BudgetTest, ThreadsNeverTakeMoreThanThereIs) {
  Budget budget(100);
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5'000; ++n) {
        const auto share = budget.take(60);
        if (share && budget.left() > 40) over = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(over);
  EXPECT_EQ(budget.left(), 100U);
}

TEST_F(LinkTest, AnInboxKeepsWhatIsNotConsumedYet) {
  Budget memory(64UL << 10);
  Inbox inbox(memory);
  EXPECT_TRUE(inbox.empty());
  client_.send("first,second");
  ASSERT_EQ(inbox.fill(client_.link(), Link::Wait::no), 12U);
  inbox.consume(6);
  EXPECT_EQ(inbox.view(), "second");
  inbox.rest();
  EXPECT_EQ(inbox.view(), "second") << "there are bytes: the memory stays";
  client_.send(std::string(20'000, 'x'));
  while (inbox.view().size() < 20'006) ASSERT_GT(inbox.fill(client_.link(), Link::Wait::no).value_or(0), 0U);
  EXPECT_TRUE(inbox.view().starts_with("secondxxx"));
  inbox.consume(20'006);
  EXPECT_TRUE(inbox.empty());
  inbox.rest();
  EXPECT_TRUE(inbox.empty());
  EXPECT_EQ(inbox.fill(client_.link(), Link::Wait::no), std::nullopt);
}

TEST_F(LinkTest, AnInboxDrawsOnTheBudgetForWhatItHoldsBeyondTheFreeBytes) {
  Budget memory(3 * Inbox::kFree);
  Inbox inbox(memory);
  const auto take = [&](std::size_t bytes) {
    client_.send(std::string(bytes, 'x'));
    const std::size_t goal = inbox.view().size() + bytes;
    do {
      (void)inbox.fill(client_.link(), Link::Wait::no);
    } while (inbox.view().size() < goal && !inbox.full());
  };
  take(Inbox::kFree);
  EXPECT_EQ(memory.left(), 3 * Inbox::kFree);
  take(1);
  EXPECT_EQ(memory.left(), 2 * Inbox::kFree) << "twice the free bytes are held";
  take(2 * Inbox::kFree);
  EXPECT_EQ(memory.left(), 0U);
  EXPECT_FALSE(inbox.full());
  take(Inbox::kFree);
  EXPECT_TRUE(inbox.full()) << "the budget has no room for more";
  inbox.consume(inbox.view().size() - 3);
  inbox.shrink();
  EXPECT_EQ(memory.left(), 3 * Inbox::kFree) << "what is kept fits into the free bytes";
  EXPECT_EQ(inbox.view(), "xxx");
  take(Inbox::kFree);
  EXPECT_LT(memory.left(), 3 * Inbox::kFree);
  inbox.clear();
  EXPECT_EQ(memory.left(), 3 * Inbox::kFree);
  EXPECT_TRUE(inbox.empty());
}

}  // namespace
}  // namespace jobq
