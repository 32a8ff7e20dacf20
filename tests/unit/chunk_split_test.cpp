// Tests of the split of a handler's output into chunks of at most 1 MB.
#include <gtest/gtest.h>

#include "core/workers/run/chunk_split.h"
#include "jobq/json.h"

namespace {

using namespace jobq;

std::string joined(const std::vector<Chunk>& chunks) {
  std::string text;
  for (const Chunk& chunk : chunks) {
    EXPECT_TRUE(json::valid(chunk.output));
    EXPECT_LE(chunk.output.size() + chunk.metrics.size() + 40, kChunkLimit);
    text += json::decode(chunk.output);
  }
  return text;
}

TEST(ChunkSplit, AFittingChunkStays) {
  for (const char* text : {"{\"a\":1.0}", "\"x\"", "1e400", "[ 1 , 2 ]", "null"}) {
    const auto chunks = splitChunk({text, "{\"n\":1}"});
    ASSERT_EQ(chunks.size(), 1U);
    EXPECT_EQ(chunks[0].output, text);
    EXPECT_EQ(chunks[0].metrics, "{\"n\":1}");
    EXPECT_FALSE(chunks[0].partial);
  }
  EXPECT_EQ(splitChunk({" \n1\t", ""})[0].output, "1");
}

TEST(ChunkSplit, ALongStringIsCutIntoStrings) {
  const std::string text(2'500'000, 'x');
  const std::string output = '"' + text + '"';
  const auto chunks = splitChunk({output, "{\"n\":1}"});
  EXPECT_EQ(chunks.size(), 3U);
  EXPECT_EQ(joined(chunks), text);
  for (const Chunk& chunk : chunks) {
    EXPECT_FALSE(chunk.partial);
    EXPECT_EQ(chunk.metrics, &chunk == &chunks.back() ? "{\"n\":1}" : "") << "only the last chunk has the metrics";
  }
}

// The test cuts a character at every alignment.
TEST(ChunkSplit, CharactersStayWhole) {
  for (const std::string unit : {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\\n", "\\u20ac", "\\ud83d\\ude00"}) {
    for (std::size_t shift = 0; shift < unit.size(); ++shift) {
      std::string text(shift, 'x');
      while (text.size() < kChunkLimit + 100) text += unit;
      const std::string output = '"' + text + '"';
      const auto chunks = splitChunk({output, ""});
      EXPECT_EQ(chunks.size(), 2U);
      EXPECT_EQ(joined(chunks), json::decode(output)) << unit << " " << shift;
    }
  }
}

TEST(ChunkSplit, ALargeObjectIsCutIntoPiecesOfText) {
  const std::string object = "{\"key \\\"quoted\\\"\":\"" + std::string(3'000'000, '\'') + "\\u20ac\",\"n\":1.0}";
  const auto chunks = splitChunk({object, ""});
  EXPECT_GE(chunks.size(), 3U);
  EXPECT_EQ(joined(chunks), object);
  for (const Chunk& chunk : chunks) EXPECT_TRUE(chunk.partial);
}

TEST(ChunkSplit, TheLargestFittingOutputIsNotCut) {
  const std::string metrics = "{}" + std::string(kMetricsLimit - 2, ' ');
  for (std::size_t size = kChunkLimit - kMetricsLimit - 70; size < kChunkLimit - kMetricsLimit - 30; ++size) {
    const std::string output = '"' + std::string(size - 2, 'x') + '"';
    const auto chunks = splitChunk({output, metrics});
    for (const Chunk& chunk : chunks) EXPECT_LE(chunk.output.size() + chunk.metrics.size() + 40, kChunkLimit);
  }
}

}  // namespace
