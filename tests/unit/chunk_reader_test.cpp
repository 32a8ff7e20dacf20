// Tests of chunked bodies and of targets: the decoded bytes, the refusals, and equal results for every split into
// pieces.
#include "core/http/transport/chunk_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/http/api/target.h"

namespace {

using namespace jobq;

struct Read {
  std::string body;
  std::size_t used = 0;
  ChunkReader::Part part = ChunkReader::Part::framing;

  bool operator==(const Read&) const = default;
};

// Reads `bytes` in pieces of the sizes returned by `step`.
template <class Step>
Read readChunks(std::string_view bytes, Step step) {
  Read read;
  ChunkReader reader;
  std::size_t seen = 0;
  for (;;) {
    if (reader.part() == ChunkReader::Part::framing) {
      read.used += reader.skipFraming(bytes.substr(read.used, seen - read.used));
    }
    if (reader.part() == ChunkReader::Part::data) {
      const auto take = std::min<std::uint64_t>(seen - read.used, reader.dataLeft());
      read.body += bytes.substr(read.used, take);
      read.used += take;
      if (take > 0) reader.tookData(take);
    }
    read.part = reader.part();
    if (read.part == ChunkReader::Part::end || read.part == ChunkReader::Part::broken) return read;
    if (read.used == seen && seen == bytes.size()) return read;
    if (read.used == seen) seen = std::min(bytes.size(), seen + step());
  }
}

Read readWhole(std::string_view bytes) {
  return readChunks(bytes, [&] { return bytes.size(); });
}

TEST(ChunkReader, TakesTheBodyOutAndStopsAtTheEndOfTheBody) {
  EXPECT_EQ(readWhole("0\r\n\r\nGET"), (Read{"", 5, ChunkReader::Part::end}));
  EXPECT_EQ(readWhole("3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nT: v\r\nU:\r\n\r\nnext"),
            (Read{"abc0123456789", 46, ChunkReader::Part::end}));
  EXPECT_EQ(readWhole("fF\r\n" + std::string(255, 'x') + "\r\n0\r\n\r\n").body.size(), 255U);
}

TEST(ChunkReader, IsNotAtTheEndBeforeTheLastByte) {
  const std::string bytes = "3;a\r\nabc\r\n0\r\nT: v\r\n\r\n";
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Read read = readWhole(bytes.substr(0, size));
    EXPECT_NE(read.part, ChunkReader::Part::end) << size;
    EXPECT_NE(read.part, ChunkReader::Part::broken) << size;
  }
}

TEST(ChunkReader, RefusesMalformedChunks) {
  for (const std::string& bad : {std::string("\r\n"),
                                 std::string("x"),
                                 std::string("-1\r\n"),
                                 std::string("0x1\r\n"),
                                 std::string(" 1\r\n"),
                                 std::string("1 \r\n"),
                                 std::string("1\n"),
                                 std::string("1\rx"),
                                 std::string("1\r\nab"),
                                 std::string("1\r\na\n"),
                                 std::string("1\r\na\rx"),
                                 std::string("1000000000000000\r\n"),
                                 std::string("0;\x01\r\n"),
                                 "1;" + std::string(5000, 'x'),
                                 std::string("0\r\n x: y\r\n"),
                                 std::string("0\r\n: y\r\n"),
                                 std::string("0\r\nxy\r\n"),
                                 std::string("0\r\nx: y\n"),
                                 std::string("0\r\nx: \x01"),
                                 "0\r\nx: " + std::string(20000, 'y')}) {
    EXPECT_EQ(readWhole(bad).part, ChunkReader::Part::broken) << bad.substr(0, 40);
  }
}

TEST(ChunkReader, ReadsTheSameHoweverTheBytesCome) {
  std::mt19937 dice(1);
  for (const std::string& bytes : {std::string("3\r\nabc\r\n1;e\r\nd\r\n0\r\nT: v\r\n\r\nnext"),
                                   std::string("3\r\nabc\r\nq"), std::string("5\r\nabcdefg")}) {
    const Read whole = readWhole(bytes);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(readChunks(bytes, [&] { return 1 + dice() % 4; }), whole) << bytes;
  }
}

TEST(Target, IsTakenApartAndDecoded) {
  const auto target = readTarget("/v2/a%2Fb+c/%c3%a4?x=1&x=a+b%26&flag&=v&&e=#frag?y=z");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v2/a%2Fb+c/\u00e4");
  EXPECT_EQ(target->query,
            (std::multimap<std::string, std::string>{{"x", "1"}, {"x", "a b&"}, {"flag", ""}, {"", "v"}, {"e", ""}}));
  EXPECT_EQ(readTarget("/")->path, "/");
}

TEST(Target, BrokenEncodingsAreRefused) {
  for (const char* bad : {"/%", "/%4", "/%zz", "/a%0", "/a?b=%", "/a?%g0=1", "/%00", "/a?b=%00"}) {
    EXPECT_FALSE(readTarget(bad)) << bad;
  }
}

}  // namespace
