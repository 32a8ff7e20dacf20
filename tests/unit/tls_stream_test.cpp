// Tests of the bytes of one TLS connection after its handshake (core/http/transport/tls_stream.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
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

class TlsStreamTest : public testing::Test, protected test::TlsFixture {};

TEST_F(TlsStreamTest, ARecordInPiecesIsTextOnlyWhenItIsWhole) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.encrypt("0123456789");
  while (client.waiting() > 1) {
    client.transfer(7 < client.waiting() ? 7 : client.waiting() - 1);
    ASSERT_EQ(read(*stream), std::nullopt) << client.waiting();
  }
  client.transfer();
  ASSERT_EQ(read(*stream, ByteStream::Wait::no, 4), 4U);
  EXPECT_EQ(std::string(bytes_.data(), 4), "0123");
  ASSERT_EQ(read(*stream, ByteStream::Wait::no, 4), 4U) << "from the memory of the stream";
  ASSERT_EQ(read(*stream, ByteStream::Wait::no, 4), 2U);
  EXPECT_EQ(std::string(bytes_.data(), 2), "89");
  EXPECT_EQ(read(*stream), std::nullopt);
}

TEST_F(TlsStreamTest, NoRecordIsHeldBackWhenReadReportsNone) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  std::string sent;
  for (int i = 0; i < 5; ++i) {
    const std::string text(10'000, static_cast<char>('a' + i));
    client.encrypt(text);
    sent += text;
  }
  client.transfer();
  EXPECT_EQ(readAll(*stream), sent);
  EXPECT_EQ(read(*stream), std::nullopt);
}

TEST_F(TlsStreamTest, LingeringWaitsForTheNextTextAndHasAnEnd) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(read(*stream, ByteStream::Wait::linger), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kLinger);
  auto reading = std::async(std::launch::async, [&] {
    std::optional<std::size_t> got;
    while (!(got = read(*stream, ByteStream::Wait::linger))) {
    }
    return *got;
  });
  client.encrypt("late");
  client.transfer();
  EXPECT_EQ(testkit::resultOf("the read that lingers", reading), 4U);
}

TEST_F(TlsStreamTest, ASmallAnswerIsOneRecord) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  EXPECT_TRUE(stream->write("head,", "body", TransferDeadline(places_)));
  EXPECT_EQ(client.received(), "head,body");
  EXPECT_EQ(client.records(), 1);
  EXPECT_TRUE(stream->write("", "", TransferDeadline(places_)));
  EXPECT_EQ(client.received(), "");
  EXPECT_TRUE(stream->write("head,", std::string(16'385, 'x'), TransferDeadline(places_)));
  EXPECT_EQ(client.received(), "head," + std::string(16'385, 'x'));
  EXPECT_EQ(client.records(), 1 + 3) << "the head alone, a full record, and the last byte";
}

TEST_F(TlsStreamTest, WritesMoreThanTheSocketHolds) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  std::string large;
  while (large.size() < 2UL << 20) large += std::to_string(large.size());
  auto writing =
      std::async(std::launch::async, [&] { return stream->write("head", large, TransferDeadline(places_)); });
  std::string got;
  testkit::waitFor("all bytes of the write to come", [&] {
    got += client.received();
    return got.size() >= large.size() + 4;
  });
  EXPECT_TRUE(testkit::resultOf("the write", writing));
  EXPECT_TRUE(got == "head" + large) << "of " << got.size() << " bytes some are others than those sent";
  EXPECT_EQ(places_.left(), 8U) << "a place that was taken is given back";
}

TEST_F(TlsStreamTest, AHurriedWriteGivesUpWhereItWouldHaveToWait) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  EXPECT_FALSE(stream->write("head", std::string(4UL << 20, 'x'), TransferDeadline::hurried()));
  EXPECT_THAT(client.received(), StartsWith("headxxx")) << "the bytes that fit have left";
}

TEST_F(TlsStreamTest, AWriteToAClientThatHasGoneFails) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.hangUp();
  EXPECT_FALSE(stream->write("head", "body", TransferDeadline(places_)));
  EXPECT_FALSE(stream->write("head", "body", TransferDeadline(places_))) << "the stream stays broken";
}

TEST_F(TlsStreamTest, ACloseNotifyIsTheEndBehindTheText) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.encrypt("last");
  client.makeCloseNotify();
  client.transfer();
  ASSERT_EQ(read(*stream), 4U);
  EXPECT_EQ(read(*stream), 0U);
  EXPECT_EQ(read(*stream, ByteStream::Wait::linger), 0U);
  EXPECT_TRUE(stream->write("answer", "", TransferDeadline(places_))) << "the other direction is open";
  EXPECT_EQ(client.received(), "answer");
}

TEST_F(TlsStreamTest, AClientThatClosesWithoutCloseNotifyIsTheEndBehindTheText) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.encrypt("last");
  client.transfer();
  client.endSending();
  ASSERT_EQ(read(*stream), 4U) << "bytes in front of the end are not lost";
  EXPECT_EQ(read(*stream), 0U);
  EXPECT_EQ(read(*stream), 0U);
}

TEST_F(TlsStreamTest, AClientThatClosesInsideARecordGivesNoText) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.encrypt("never whole");
  client.transfer(client.waiting() - 1);
  client.endSending();
  EXPECT_EQ(read(*stream), 0U);
}

TEST_F(TlsStreamTest, AChangedRecordEndsTheConnection) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  client.encrypt("first");
  client.transfer();
  client.encrypt("second");
  std::string record = client.takeWaiting();
  record.back() = static_cast<char>(record.back() ^ 1);
  client.sendRaw(record);
  ASSERT_EQ(read(*stream), 5U);
  EXPECT_EQ(read(*stream), 0U);
  EXPECT_EQ(read(*stream), 0U);
}

TEST_F(TlsStreamTest, EndSendingSendsCloseNotifyAndLetsTheClientGoOn) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  stream->endSending();
  EXPECT_EQ(client.received(), "");
  EXPECT_TRUE(client.sawCloseNotify());
  EXPECT_TRUE(client.sawEnd());
  client.encrypt("more");
  client.transfer();
  EXPECT_EQ(stream->drop(bytes_.data(), bytes_.size()), 4U + 22U) << "a record of TLS 1.3 has 22 bytes around the text";
  client.endSending();
  EXPECT_EQ(stream->drop(bytes_.data(), bytes_.size()), 0U);
}

TEST_F(TlsStreamTest, ShutDownEndsAReadOfAnotherThread) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = connected(client, context);
  auto reading = std::async(std::launch::async, [&] {
    std::optional<std::size_t> got;
    while (!(got = read(*stream, ByteStream::Wait::linger))) {
    }
    return *got;
  });
  stream->shutDown();
  EXPECT_EQ(testkit::resultOf("the read of the other thread", reading), 0U);
}

}  // namespace
}  // namespace jobq
