// What a handler may hand out, and how much of it.
#include "core/jobs/emission.h"

#include <gtest/gtest.h>

#include <string>

#include "jobq/job_handler.h"

namespace jobq {
namespace {

std::string refusal(Emissions& emissions, std::string_view chunk, std::string_view metrics = "") {
  try {
    emissions.take(chunk, metrics);
    return "";
  } catch (const JobFailed& failure) {
    return failure.what();
  }
}

TEST(Emissions, TakesJsonAndNothingElse) {
  Emissions emissions;
  EXPECT_EQ(refusal(emissions, "{\"a\":1}"), "");
  EXPECT_EQ(refusal(emissions, "1", "{\"rate\":2}"), "");
  EXPECT_EQ(refusal(emissions, "x"), "the handler emitted a chunk that is not JSON");
  EXPECT_EQ(refusal(emissions, "1", "[2]"), "the handler emitted metrics that are no JSON object");
  const std::string most = "{\"m\":\"" + std::string(Emissions::kMostMetrics - 8, 'x') + "\"}";
  EXPECT_EQ(refusal(emissions, "1", most), "");
  EXPECT_EQ(refusal(emissions, "1", most + " "), "a chunk's metrics have 65537 bytes, the limit is 65536: emit less");
}

TEST(Emissions, CountsTheBytesOfAll) {
  Emissions emissions;
  const std::string quarter = "\"" + std::string(Emissions::kMost / 4 - Emissions::kPriceOfAChunk - 2, 'x') + "\"";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refusal(emissions, quarter), "");
  EXPECT_EQ(refusal(emissions, "1"), "the job's chunks exceed 256 MB in all: emit less");
}

// 36 million chunks of one digit are 36 MB to whoever counts bytes alone, and took a gigabyte in five seconds.
TEST(Emissions, CountsTheChunksToo) {
  Emissions emissions;
  std::size_t taken = 0;
  while (refusal(emissions, "1").empty()) ++taken;
  EXPECT_EQ(taken, Emissions::kMost / (1 + Emissions::kPriceOfAChunk));
}

}  // namespace
}  // namespace jobq
