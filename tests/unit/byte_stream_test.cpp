// Tests of the bytes of one plain connection, and of the deadlines for slow clients
// (core/http/transport/byte_stream.h).
#include "core/http/transport/byte_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "core/http/transport/budget.h"
#include "core/http/transport/read_buffer.h"
#include "set_time.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

class ByteStreamTest : public testing::Test {
 protected:
  std::optional<std::size_t> read(ByteStream::Wait wait = ByteStream::Wait::no) {
    return client_.stream().read(bytes_.data(), bytes_.size(), wait);
  }
  std::string bytes(std::size_t size) const { return {bytes_.data(), size}; }

  test::SocketPair client_;
  Budget places_{8};
  std::array<char, 64> bytes_{};
};

TEST_F(ByteStreamTest, DistinguishesNoDataFromTheEnd) {
  EXPECT_EQ(read(), std::nullopt);
  EXPECT_EQ(read(ByteStream::Wait::linger), std::nullopt) << "the wait has an end";
  client_.send("abc");
  ASSERT_EQ(read(), 3U);
  EXPECT_EQ(bytes(3), "abc");
  client_.send("d");
  client_.endSending();
  EXPECT_EQ(read(), 1U) << "bytes in front of the end are not lost";
  EXPECT_EQ(read(), 0U);
  EXPECT_EQ(read(ByteStream::Wait::linger), 0U);
}

TEST_F(ByteStreamTest, WritesBothTextsInOrder) {
  EXPECT_TRUE(client_.stream().write("head,", "body", TransferDeadline(places_)));
  EXPECT_TRUE(client_.stream().write("", "alone", TransferDeadline(places_)));
  EXPECT_TRUE(client_.stream().write("", "", TransferDeadline(places_)));
  EXPECT_EQ(client_.received(), "head,bodyalone");
}

TEST_F(ByteStreamTest, WritesMoreThanTheSocketHolds) {
  const std::string large(4UL << 20, 'x');
  auto writing =
      std::async(std::launch::async, [&] { return client_.stream().write("head", large, TransferDeadline(places_)); });
  std::string got;
  testkit::waitFor("all bytes of the write to come", [&] {
    got += client_.received();
    return got.size() >= large.size() + 4;
  });
  EXPECT_EQ(got.size(), large.size() + 4);
  EXPECT_TRUE(testkit::resultOf("the write", writing));
  EXPECT_TRUE(got.starts_with("headx"));
  EXPECT_EQ(places_.left(), 8U) << "a finished write gives the place back";
}

TEST_F(ByteStreamTest, AWriteToADepartedClientFails) {
  client_.hangUp();
  EXPECT_FALSE(client_.stream().write("head", "body", TransferDeadline(places_)));
}

TEST_F(ByteStreamTest, AHurriedWriteGivesUpInsteadOfWaiting) {
  const std::string large(4UL << 20, 'x');
  EXPECT_FALSE(client_.stream().write("head", large, TransferDeadline::hurried()));
  EXPECT_FALSE(client_.received().empty()) << "the first bytes fit into the socket";
}

TEST_F(ByteStreamTest, ShutDownEndsAReadOfASecondThread) {
  auto reading = std::async(std::launch::async, [this] {
    std::optional<std::size_t> got;
    while (!(got = read(ByteStream::Wait::linger))) {
    }
    return *got;
  });
  client_.stream().shutDown();
  EXPECT_EQ(testkit::resultOf("the read of the other thread", reading), 0U);
}

TEST_F(ByteStreamTest, EndSendingLetsTheClientGoOn) {
  client_.stream().endSending();
  EXPECT_EQ(client_.received(), "");
  EXPECT_TRUE(client_.sawEnd());
  client_.send("more");
  EXPECT_EQ(read(), 4U);
}

TEST_F(ByteStreamTest, DropDistinguishesNoDataFromTheEndToo) {
  EXPECT_EQ(client_.stream().drop(bytes_.data(), bytes_.size()), std::nullopt);
  client_.send("abc");
  EXPECT_EQ(client_.stream().drop(bytes_.data(), bytes_.size()), 3U);
  client_.endSending();
  EXPECT_EQ(client_.stream().drop(bytes_.data(), bytes_.size()), 0U);
}

TEST_F(ByteStreamTest, ADroppedConnectionClosesTheDescriptor) {
  auto stream = client_.releaseStream();
  const int descriptor = stream->descriptor();
  EXPECT_GE(::fcntl(descriptor, F_GETFD), 0);
  stream.reset();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

TEST(PaceTest, AllowsASecondMoreForEach8KiBMoved) {
  Budget places(1);
  test::SetTime time;
  TransferDeadline deadline(places, time);
  EXPECT_EQ(deadline.left(), std::chrono::seconds(20));
  deadline.moved(8'191);
  EXPECT_EQ(deadline.left(), std::chrono::seconds(20));
  deadline.moved(100UL * 8'192);
  EXPECT_EQ(deadline.left(), std::chrono::seconds(120));
  time.pass(std::chrono::seconds(119));
  EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::wait);
  EXPECT_EQ(deadline.untilNextQuestion(), std::chrono::seconds(1));
  time.pass(std::chrono::seconds(1));
  EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::late);
}

TEST(PaceTest, TakesNoPlaceAtOnceAndAsksAgainWithinASecond) {
  Budget places(0);
  test::SetTime time;
  TransferDeadline deadline(places, time);
  EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::wait);
  EXPECT_EQ(deadline.untilNextQuestion(), std::chrono::seconds(1));
  time.pass(std::chrono::seconds(1));
  EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::noSlot);
  EXPECT_EQ(TransferDeadline::hurried().mayWait(), TransferDeadline::Verdict::late);
}

TEST(PaceTest, ATransferOfMoreThanASecondHoldsAPlace) {
  Budget places(1);
  test::SetTime time;
  {
    TransferDeadline deadline(places, time);
    time.pass(std::chrono::milliseconds(999));
    EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::wait);
    EXPECT_EQ(places.left(), 1U);
    time.pass(std::chrono::milliseconds(1));
    EXPECT_EQ(deadline.mayWait(), TransferDeadline::Verdict::wait);
    EXPECT_EQ(places.left(), 0U);
    EXPECT_EQ(deadline.untilNextQuestion(), std::chrono::seconds(19)) << "the transfer needs no further place";
  }
  EXPECT_EQ(places.left(), 1U);
}

TEST(BudgetTest, AShareGoesBackWithTheOwner) {
  Budget budget(10);
  {
    auto reservation = budget.reserve(6);
    ASSERT_TRUE(reservation);
    EXPECT_EQ(budget.left(), 4U);
    EXPECT_FALSE(budget.reserve(5)) << "the budget has less left";
    EXPECT_FALSE(reservation->grow(budget, 5));
    EXPECT_EQ(reservation->amount(), 6U);
    ASSERT_TRUE(reservation->grow(budget, 4));
    Budget::Reservation other = std::move(*reservation);
    EXPECT_EQ(other.amount(), 10U);
    EXPECT_EQ(budget.left(), 0U);
    other.release();
    EXPECT_EQ(budget.left(), 10U);
    other.release();
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
        const auto reservation = budget.reserve(60);
        if (reservation && budget.left() > 40) over = true;
      }
    });
  }
  testkit::joinAll("the threads that draw on the budget", threads);
  EXPECT_FALSE(over);
  EXPECT_EQ(budget.left(), 100U);
}

TEST_F(ByteStreamTest, AReadBufferKeepsUnconsumedBytes) {
  Budget memory(64UL << 10);
  ReadBuffer buffer(memory);
  EXPECT_TRUE(buffer.empty());
  client_.send("first,second");
  ASSERT_EQ(buffer.fill(client_.stream(), ByteStream::Wait::no), 12U);
  buffer.consume(6);
  EXPECT_EQ(buffer.view(), "second");
  buffer.releaseMemory();
  EXPECT_EQ(buffer.view(), "second") << "there are bytes: the memory stays";
  client_.send(std::string(20'000, 'x'));
  while (buffer.view().size() < 20'006) ASSERT_GT(buffer.fill(client_.stream(), ByteStream::Wait::no).value_or(0), 0U);
  EXPECT_TRUE(buffer.view().starts_with("secondxxx"));
  buffer.consume(20'006);
  EXPECT_TRUE(buffer.empty());
  buffer.releaseMemory();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.fill(client_.stream(), ByteStream::Wait::no), std::nullopt);
}

TEST_F(ByteStreamTest, AReadBufferDrawsOnTheBudgetBeyondTheFreeBytes) {
  Budget memory(3 * ReadBuffer::kFree);
  ReadBuffer buffer(memory);
  const auto receive = [&](std::size_t bytes) {
    client_.send(std::string(bytes, 'x'));
    const std::size_t goal = buffer.view().size() + bytes;
    do {
      (void)buffer.fill(client_.stream(), ByteStream::Wait::no);
    } while (buffer.view().size() < goal && !buffer.full());
  };
  receive(ReadBuffer::kFree);
  EXPECT_EQ(memory.left(), 3 * ReadBuffer::kFree);
  receive(1);
  EXPECT_EQ(memory.left(), 2 * ReadBuffer::kFree) << "twice the free bytes are held";
  receive(2 * ReadBuffer::kFree);
  EXPECT_EQ(memory.left(), 0U);
  EXPECT_FALSE(buffer.full());
  receive(ReadBuffer::kFree);
  EXPECT_TRUE(buffer.full()) << "the budget has no room for more";
  buffer.consume(buffer.view().size() - 3);
  buffer.shrink();
  EXPECT_EQ(memory.left(), 3 * ReadBuffer::kFree) << "the rest fits into the free bytes";
  EXPECT_EQ(buffer.view(), "xxx");
  receive(ReadBuffer::kFree);
  EXPECT_LT(memory.left(), 3 * ReadBuffer::kFree);
  buffer.clear();
  EXPECT_EQ(memory.left(), 3 * ReadBuffer::kFree);
  EXPECT_TRUE(buffer.empty());
}

}  // namespace
}  // namespace jobq
