// Tests of the bytes of one TLS connection after the handshake (core/http/transport/tls_stream.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "testkit/wait_for.h"
#include "tls_client.h"

namespace jobq {
namespace {

using test::TlsClient;
using testing::StartsWith;

/// A server's stream and a client, behind their handshake.
class TlsStreamTest : public testing::Test, protected test::TlsFixture {
 protected:
  const TlsContext context_{certificate(), key()};
  TlsClient client_;
  const std::unique_ptr<ByteStream> stream_ = connected(client_, context_);
};

TEST_F(TlsStreamTest, OnlyAWholeRecordIsText) {
  client_.encrypt("0123456789");
  while (client_.waiting() > 1) {
    client_.transfer(7 < client_.waiting() ? 7 : client_.waiting() - 1);
    ASSERT_EQ(read(*stream_), std::nullopt) << client_.waiting();
  }
  client_.transfer();
  ASSERT_EQ(read(*stream_, ByteStream::Wait::no, 4), 4U);
  EXPECT_EQ(std::string(bytes_.data(), 4), "0123");
  ASSERT_EQ(read(*stream_, ByteStream::Wait::no, 4), 4U) << "the bytes are in the memory of the stream";
  ASSERT_EQ(read(*stream_, ByteStream::Wait::no, 4), 2U);
  EXPECT_EQ(std::string(bytes_.data(), 2), "89");
  EXPECT_EQ(read(*stream_), std::nullopt);
}

TEST_F(TlsStreamTest, NoRecordIsHeldBackWhenReadReportsNoData) {
  std::string sent;
  for (int i = 0; i < 5; ++i) {
    const std::string text(10'000, static_cast<char>('a' + i));
    client_.encrypt(text);
    sent += text;
  }
  client_.transfer();
  EXPECT_EQ(readAll(*stream_), sent);
  EXPECT_EQ(read(*stream_), std::nullopt);
}

TEST_F(TlsStreamTest, LingeringWaitsForTheNextTextAndHasAnEnd) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(read(*stream_, ByteStream::Wait::linger), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kLinger);
  auto reading = std::async(std::launch::async, [&] {
    std::optional<std::size_t> got;
    while (!(got = read(*stream_, ByteStream::Wait::linger))) {
    }
    return *got;
  });
  client_.encrypt("late");
  client_.transfer();
  EXPECT_EQ(testkit::resultOf("the read that lingers", reading), 4U);
}

TEST_F(TlsStreamTest, ASmallAnswerIsASingleRecord) {
  EXPECT_TRUE(stream_->write("head,", "body", TransferDeadline(places_)));
  EXPECT_EQ(client_.received(), "head,body");
  EXPECT_EQ(client_.records(), 1);
  EXPECT_TRUE(stream_->write("", "", TransferDeadline(places_)));
  EXPECT_EQ(client_.received(), "");
  EXPECT_TRUE(stream_->write("head,", std::string(16'385, 'x'), TransferDeadline(places_)));
  EXPECT_EQ(client_.received(), "head," + std::string(16'385, 'x'));
  EXPECT_EQ(client_.records(), 1 + 3) << "the head alone, a full record, and the last byte";
}

TEST_F(TlsStreamTest, WritesMoreThanTheSocketHolds) {
  std::string large;
  while (large.size() < 2UL << 20) large += std::to_string(large.size());
  auto writing =
      std::async(std::launch::async, [&] { return stream_->write("head", large, TransferDeadline(places_)); });
  std::string got;
  testkit::waitFor("all bytes of the write to come", [&] {
    got += client_.received();
    return got.size() >= large.size() + 4;
  });
  EXPECT_TRUE(testkit::resultOf("the write", writing));
  EXPECT_TRUE(got == "head" + large) << "of " << got.size() << " bytes some differ from the sent bytes";
  EXPECT_EQ(places_.left(), 8U) << "a finished write gives the place back";
}

TEST_F(TlsStreamTest, AHurriedWriteGivesUpInsteadOfWaiting) {
  EXPECT_FALSE(stream_->write("head", std::string(4UL << 20, 'x'), TransferDeadline::hurried()));
  EXPECT_THAT(client_.received(), StartsWith("headxxx")) << "the first bytes fit into the socket";
}

TEST_F(TlsStreamTest, AWriteToADepartedClientFails) {
  client_.hangUp();
  EXPECT_FALSE(stream_->write("head", "body", TransferDeadline(places_)));
  EXPECT_FALSE(stream_->write("head", "body", TransferDeadline(places_))) << "the stream stays broken";
}

TEST_F(TlsStreamTest, ACloseNotifyIsTheEndBehindTheText) {
  client_.encrypt("last");
  client_.makeCloseNotify();
  client_.transfer();
  ASSERT_EQ(read(*stream_), 4U);
  EXPECT_EQ(read(*stream_), 0U);
  EXPECT_EQ(read(*stream_, ByteStream::Wait::linger), 0U);
  EXPECT_TRUE(stream_->write("answer", "", TransferDeadline(places_))) << "the other direction is open";
  EXPECT_EQ(client_.received(), "answer");
}

TEST_F(TlsStreamTest, ACloseWithoutCloseNotifyIsTheEndAfterTheText) {
  client_.encrypt("last");
  client_.transfer();
  client_.endSending();
  ASSERT_EQ(read(*stream_), 4U) << "bytes in front of the end are not lost";
  EXPECT_EQ(read(*stream_), 0U);
  EXPECT_EQ(read(*stream_), 0U);
}

TEST_F(TlsStreamTest, ACloseInsideARecordGivesNoText) {
  client_.encrypt("never whole");
  client_.transfer(client_.waiting() - 1);
  client_.endSending();
  EXPECT_EQ(read(*stream_), 0U);
}

TEST_F(TlsStreamTest, AChangedRecordEndsTheConnection) {
  client_.encrypt("first");
  client_.transfer();
  client_.encrypt("second");
  std::string record = client_.readWaiting();
  record.back() = static_cast<char>(record.back() ^ 1);
  client_.sendRaw(record);
  ASSERT_EQ(read(*stream_), 5U);
  EXPECT_EQ(read(*stream_), 0U);
  EXPECT_EQ(read(*stream_), 0U);
}

TEST_F(TlsStreamTest, EndSendingSendsCloseNotifyAndLetsTheClientGoOn) {
  stream_->endSending();
  EXPECT_EQ(client_.received(), "");
  EXPECT_TRUE(client_.sawCloseNotify());
  EXPECT_TRUE(client_.sawEnd());
  client_.encrypt("more");
  client_.transfer();
  EXPECT_EQ(stream_->drop(bytes_.data(), bytes_.size()), 4U + 22U)
      << "a record of TLS 1.3 has 22 bytes around the text";
  client_.endSending();
  EXPECT_EQ(stream_->drop(bytes_.data(), bytes_.size()), 0U);
}

TEST_F(TlsStreamTest, ShutDownEndsAReadOfASecondThread) {
  auto reading = std::async(std::launch::async, [&] {
    std::optional<std::size_t> got;
    while (!(got = read(*stream_, ByteStream::Wait::linger))) {
    }
    return *got;
  });
  stream_->shutDown();
  EXPECT_EQ(testkit::resultOf("the read of the other thread", reading), 0U);
}

}  // namespace
}  // namespace jobq
