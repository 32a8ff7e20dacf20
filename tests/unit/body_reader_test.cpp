// Tests of reading a request's body from a connection with pieces chosen by the test
// (core/http/transport/body_reader.h).
#include "core/http/transport/body_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <istream>

#include "set_time.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::HasSubstr;

/// A stream of prepared pieces: each read returns the next piece, or as much of the piece as the reader asks for. After
/// the last piece the client has closed its side.
class PiecewiseStream final : public ByteStream {
 public:
  /// `time` outlives the stream.
  explicit PiecewiseStream(test::SetTime& time) : ByteStream(::open("/dev/null", O_RDONLY | O_CLOEXEC)), time_(time) {}

  std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) override {
    if (pieces.empty() && wait == Wait::linger) {
      ++lingered;
      time_.pass(drips ? kBetweenDrops : kLinger);
      if (drips) pieces.push_back("x");
    }
    if (pieces.empty()) return open ? std::nullopt : std::optional<std::size_t>(0);
    std::string& piece = pieces.front();
    const std::size_t step = std::min(size, piece.size());
    std::copy_n(piece.data(), step, to);
    piece.erase(0, step);
    if (piece.empty()) pieces.pop_front();
    return step;
  }
  std::optional<std::size_t> writeSome(std::string_view, std::string_view) override { return std::nullopt; }

  /// Time until the next byte of a client that drips.
  static constexpr std::chrono::milliseconds kBetweenDrops{10};

  std::deque<std::string> pieces;
  int lingered = 0;    ///< waits without a byte
  bool drips = false;  ///< each wait brings one byte
  bool open = false;   ///< with true, more bytes may come after the last piece

 private:
  test::SetTime& time_;
};

class BodyReaderTest : public testing::Test {
 protected:
  BodyReader& ofLength(std::uint64_t length) {
    RequestHead head;
    head.contentLength = length;
    return reader_.emplace(stream_, buffer_, head, waiting_, time_);
  }
  BodyReader& chunked() {
    RequestHead head;
    head.chunked = true;
    return reader_.emplace(stream_, buffer_, head, waiting_, time_);
  }
  std::string readAll(std::size_t step = 65'536) {
    std::istream in(&*reader_);
    std::string body;
    std::string piece(step, '\0');
    while (in.good()) {
      in.read(piece.data(), static_cast<std::streamsize>(step));
      body.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    }
    return body;
  }
  /// Returns the bytes received over the connection behind the body.
  std::string releaseMemory() {
    std::string text(buffer_.view());
    for (const std::string& piece : stream_.pieces) text += piece;
    return text;
  }

  test::SetTime time_;
  PiecewiseStream stream_{time_};
  Budget memory_{0};
  ReadBuffer buffer_{memory_};
  Budget waiting_{8};
  std::optional<BodyReader> reader_;
};

TEST_F(BodyReaderTest, ABodyEndsAtTheGivenLength) {
  stream_.pieces = {"hello wor", "ldGET / HTTP/1.1"};
  ofLength(11);
  EXPECT_FALSE(reader_->complete());
  EXPECT_EQ(readAll(), "hello world");
  EXPECT_TRUE(reader_->complete());
  EXPECT_TRUE(reader_->result());
  EXPECT_EQ(releaseMemory(), "GET / HTTP/1.1");
}

TEST_F(BodyReaderTest, AnEmptyBodyAsksForNoByte) {
  stream_.pieces = {"GET /"};
  ofLength(0);
  EXPECT_TRUE(reader_->complete());
  EXPECT_EQ(readAll(), "");
  EXPECT_EQ(releaseMemory(), "GET /");
}

TEST_F(BodyReaderTest, ALargeBodyReadDirectlyEndsAtTheGivenLengthToo) {
  const std::string body(100'000, 'b');
  stream_.pieces = {body.substr(0, 10), body.substr(10) + "GET /"};
  ofLength(body.size());
  EXPECT_EQ(readAll(), body);
  EXPECT_EQ(releaseMemory(), "GET /");
}

TEST_F(BodyReaderTest, BytesReceivedWithTheHeadAreTakenFirst) {
  stream_.pieces = {"abc"};
  ASSERT_EQ(buffer_.fill(stream_, ByteStream::Wait::no), 3U);
  stream_.pieces = {"def"};
  ofLength(6);
  EXPECT_EQ(readAll(), "abcdef");
}

TEST_F(BodyReaderTest, ChunksAreReadInAnyPieces) {
  const std::string text = "4\r\nWiki\r\n6;x=1\r\npedia \r\n0\r\n\r\nGET /";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    buffer_.clear();
    stream_.pieces.clear();
    for (std::size_t at = 0; at < text.size(); at += size) stream_.pieces.push_back(text.substr(at, size));
    chunked();
    EXPECT_EQ(readAll(3), "Wikipedia ") << size;
    EXPECT_TRUE(reader_->complete()) << size;
    EXPECT_EQ(releaseMemory(), "GET /") << size;
  }
}

TEST_F(BodyReaderTest, LargeChunksGoStraightToTheReader) {
  const std::string body(100'000, 'c');
  stream_.pieces = {"186a0\r\n", body + "\r\n0\r\n\r\nGET /"};
  chunked();
  EXPECT_EQ(readAll(), body);
  EXPECT_TRUE(reader_->complete());
  EXPECT_EQ(releaseMemory(), "GET /");
}

TEST_F(BodyReaderTest, IsReadByteByByte) {
  stream_.pieces = {"ab", "c"};
  ofLength(3);
  std::istream in(&*reader_);
  EXPECT_EQ(in.get(), 'a');
  EXPECT_EQ(in.get(), 'b');
  EXPECT_EQ(in.get(), 'c');
  EXPECT_EQ(in.get(), std::istream::traits_type::eof());
  EXPECT_TRUE(reader_->complete());
}

TEST_F(BodyReaderTest, AnIncompleteBodyPausesAndGoesOn) {
  BodyReader& reader = ofLength(6);
  stream_.pieces = {"abc"};
  stream_.open = true;
  std::string body(10, '\0');
  EXPECT_EQ(reader.readOrPause(body.data(), 10, false), 3U);
  EXPECT_FALSE(reader.isPaused());
  EXPECT_EQ(reader.readOrPause(body.data() + 3, 7, false), 0U);
  EXPECT_TRUE(reader.isPaused());
  EXPECT_TRUE(reader.result());
  EXPECT_EQ(reader.timeLeft(), std::chrono::seconds(1) - kLinger) << "a slot is needed after a second";
  EXPECT_EQ(stream_.lingered, 1);
  EXPECT_EQ(reader.readOrPause(body.data() + 3, 7, false), 0U);
  EXPECT_EQ(stream_.lingered, 1) << "a slow client holds no thread";
  stream_.pieces = {"defX"};
  EXPECT_EQ(reader.readOrPause(body.data() + 3, 7, false), 3U);
  EXPECT_EQ(reader.readOrPause(body.data() + 6, 4, false), 0U);
  EXPECT_FALSE(reader.isPaused()) << "the body is complete";
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(body.substr(0, 6), "abcdef");
}

TEST_F(BodyReaderTest, ADrippingClientHoldsAThreadForAMoment) {
  const testkit::HangGuard guard("the pause of a body that drips");
  BodyReader& reader = ofLength(UINT64_MAX);
  stream_.open = stream_.drips = true;
  char byte = 0;
  while (!reader.isPaused()) (void)reader.readOrPause(&byte, 1, false);
  EXPECT_TRUE(reader.result());
  EXPECT_EQ(stream_.lingered, kLinger / PiecewiseStream::kBetweenDrops);
}

TEST_F(BodyReaderTest, ABusyServerLingersForNoBody) {
  BodyReader& reader = ofLength(6);
  stream_.open = true;
  char byte = 0;
  EXPECT_EQ(reader.readOrPause(&byte, 1, true), 0U);
  EXPECT_TRUE(reader.isPaused());
  EXPECT_EQ(stream_.lingered, 0);
}

TEST_F(BodyReaderTest, AnEarlyEndIsAFaultWithTheNumberOfBytes) {
  stream_.pieces = {"hello"};
  ofLength(11);
  EXPECT_EQ(readAll(), "hello");
  EXPECT_FALSE(reader_->complete());
  ASSERT_FALSE(reader_->result());
  EXPECT_EQ(reader_->result().failure().status, 400);
  EXPECT_THAT(reader_->result().failure().sentence, HasSubstr("5 bytes came"));
}

TEST_F(BodyReaderTest, AChunkedBodyWithoutALastChunkIsNotComplete) {
  stream_.pieces = {"4\r\nWiki\r\n"};
  chunked();
  EXPECT_EQ(readAll(), "Wiki");
  EXPECT_FALSE(reader_->complete());
  EXPECT_EQ(reader_->result().failure().status, 400);
}

TEST_F(BodyReaderTest, BrokenFramingIsAFault) {
  for (const char* broken : {"x\r\n", "4\r\nWikiX\r\n0\r\n\r\n", "-1\r\n", "\r\n", "ffffffffffffffffff\r\n"}) {
    buffer_.clear();
    stream_.pieces = {broken};
    chunked();
    (void)readAll();
    EXPECT_FALSE(reader_->complete()) << broken;
    ASSERT_FALSE(reader_->result()) << broken;
    EXPECT_EQ(reader_->result().failure().status, 400) << broken;
  }
}

TEST_F(BodyReaderTest, AChunkBeyondTheLimitIsRefusedBeforeTheBytesCome) {
  stream_.pieces = {"4\r\nWiki\r\n", "7\r\n"};
  stream_.open = true;
  chunked().limit(10);
  EXPECT_EQ(readAll(), "Wiki");
  ASSERT_FALSE(reader_->result());
  EXPECT_EQ(reader_->result().failure().status, 413);
  EXPECT_THAT(reader_->result().failure().sentence, HasSubstr("10 bytes"));
}

TEST_F(BodyReaderTest, TheLimitItselfIsAllowed) {
  stream_.pieces = {"4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n"};
  chunked().limit(10);
  EXPECT_EQ(readAll(), "Wikipedia ");
  EXPECT_TRUE(reader_->complete());
}

TEST_F(BodyReaderTest, AReceivedUnreadBodyIsDropped) {
  stream_.pieces = {"hello", " world", "GET /"};
  ofLength(11);
  EXPECT_TRUE(reader_->dropArrived());
  EXPECT_EQ(releaseMemory(), "GET /");
  buffer_.clear();
  stream_.pieces = {"4\r\nWi", "ki\r\n0\r\n\r\nGET /"};
  chunked();
  EXPECT_TRUE(reader_->dropArrived());
  EXPECT_EQ(releaseMemory(), "GET /");
}

TEST_F(BodyReaderTest, AnIncompleteUnreadBodyIsNotWaitedFor) {
  stream_.pieces = {"hello"};
  stream_.open = true;
  ofLength(11);
  EXPECT_FALSE(reader_->dropArrived());
  EXPECT_FALSE(reader_->complete());
}

TEST_F(BodyReaderTest, AnUnreadBodyOfMoreThan64KBIsLeftAlone) {
  stream_.pieces = {std::string(65'537, 'x')};
  ofLength(65'537);
  EXPECT_FALSE(reader_->dropArrived());
  buffer_.clear();
  stream_.pieces = {std::string(65'536, 'x')};
  ofLength(65'536);
  EXPECT_TRUE(reader_->dropArrived());
}

}  // namespace
}  // namespace jobq
