// Tests of the bounds on the output of a handler (core/model/output_quota.h).
#include "core/model/output_quota.h"

#include <gtest/gtest.h>

#include <string>

#include "jobq/job_handler.h"

namespace jobq {
namespace {

std::string refusal(OutputQuota& outputQuota, std::string_view chunk, std::string_view metrics = "") {
  try {
    outputQuota.charge({chunk, metrics});
    return "";
  } catch (const JobFailed& failure) {
    return failure.what();
  }
}

TEST(OutputQuota, TakesOnlyJson) {
  OutputQuota outputQuota;
  EXPECT_EQ(refusal(outputQuota, "{\"a\":1}"), "");
  EXPECT_EQ(refusal(outputQuota, "1", "{\"rate\":2}"), "");
  EXPECT_EQ(refusal(outputQuota, "x"), "the handler emitted a chunk that is not JSON");
  EXPECT_EQ(refusal(outputQuota, "1", "[2]"), "the handler emitted metrics that are not a JSON object");
  const std::string most = "{\"m\":\"" + std::string(CheckedChunk::kMostMetrics - 8, 'x') + "\"}";
  EXPECT_EQ(refusal(outputQuota, "1", most), "");
  EXPECT_EQ(refusal(outputQuota, "1", most + " "), "a chunk's metrics have 65537 bytes, the limit is 65536: emit less");
}

TEST(OutputQuota, CountsTheBytesOfAll) {
  OutputQuota outputQuota;
  const std::string quarter = "\"" + std::string(OutputQuota::kMost / 4 - OutputQuota::kPriceOfAChunk - 2, 'x') + "\"";
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refusal(outputQuota, quarter), "");
  EXPECT_EQ(refusal(outputQuota, "1"), "the job's chunks exceed 256 MB in all: emit less");
}

// A count of bytes alone sees 36 million chunks of one digit as 36 MB. Measured: the chunks took one gigabyte in five
// seconds.
TEST(OutputQuota, CountsTheChunksToo) {
  OutputQuota outputQuota;
  std::size_t taken = 0;
  while (refusal(outputQuota, "1").empty()) ++taken;
  EXPECT_EQ(taken, OutputQuota::kMost / (1 + OutputQuota::kPriceOfAChunk));
}

}  // namespace
}  // namespace jobq
