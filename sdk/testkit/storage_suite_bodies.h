// Conformance: the storage carries JSON text of callers and sealed bytes byte for byte (sdk/include/jobq/job.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, BodiesComeBackByteForByte) {
  const std::string odd = "{ \"b\" : 1.0,\"a\":-0, \"n\":1234567890123456789012345, \"u\":\"\\u2028\xe2\x80\xa8\" }";
  std::vector<std::string> bodies{odd, "{\"s\":\"" + std::string(1 << 20, 'x') + "\"}",
                                  "{\"s\":\"" + std::string(20 << 20, 'y') + "\"}"};
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.input = bodies[i];
    job.s3Config = std::string("se\0aled", 7);
    job.webhook = "http://example.com/";
    submit(std::move(job));
    auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_TRUE(claimed[0].input == bodies[i]);
    EXPECT_EQ(claimed[0].s3Config, std::string("se\0aled", 7));
    EXPECT_EQ(claimed[0].webhook, "http://example.com/");
    EXPECT_EQ(complete(claimed[0].lease, bodies[i]), ReportResult::accepted);
    EXPECT_TRUE(find("j" + std::to_string(i))->output == bodies[i]);
  }
}

TEST_P(StorageSuite, EveryFieldKeepsArbitraryBytes) {
  const std::string odd = "{\"b\":1.0,\"a\":1e400,\"a\\u0041\":\"\\ud83d\\ude00 \\/ \xc3\xa9\\u0000\" , \"x\" :[ ]}";
  const std::string sealed("\0\xff\xfe'\"\x01 sealed\0", 13);
  JobSpec job = spec("a");
  job.input = odd;
  job.s3Config = sealed;
  job.webhook = "http://example.com/?q=%27'\"";
  submit(std::move(job));
  const auto claimed = claim(1);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].input, odd);
  EXPECT_EQ(claimed[0].s3Config, sealed);
  const LeaseRef lease = claimed[0].lease;
  EXPECT_EQ(leases().progress(lease, odd), ReportResult::accepted);
  EXPECT_EQ(find("a")->progress, odd);
  const std::string megabyte = "\"" + std::string(1 << 20, 'z') + "\"";
  EXPECT_EQ(append(lease, {Chunk{odd, odd, false}, Chunk{megabyte, "", true}}), ReportResult::accepted);
  const auto got = taken("a");
  ASSERT_EQ(got.size(), 1U) << "the second would not fit";
  EXPECT_EQ(got[0].output, odd);
  EXPECT_EQ(got[0].metrics, odd);
  EXPECT_TRUE(taken("a").at(0).output == megabyte);
  EXPECT_EQ(leases().finish(lease, Failed{odd, odd}), ReportResult::accepted);
  EXPECT_EQ(find("a")->error, odd);
  EXPECT_EQ(find("a")->output, odd);
  const auto owed = claimDue(Millis(1'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].input, odd);
  EXPECT_EQ(owed[0].job.output, odd);
  EXPECT_EQ(owed[0].url, "http://example.com/?q=%27'\"");
}

TEST_P(StorageSuite, AClaimOfDeliveriesEndsAtTheBoundOfBytes) {
  const auto owe = [this](const JobId& id, std::size_t input, std::size_t output) {
    JobSpec job = spec(id);
    job.input = std::string(input, ' ');
    job.webhook = "http://example.com/";
    submit(std::move(job));
    EXPECT_EQ(complete(claimOne(), std::string(output, '1')), ReportResult::accepted);
    clock_.advance(Millis(1));
  };
  constexpr std::size_t kHalf = kMaxClaimedBytes / 2;
  owe("a", kHalf, kHalf - 1);
  owe("b", 1, 1);
  owe("c", 1, 1);
  const auto claim = [this] { return claimDue(Millis(30'000)); };
  const auto first = claim();
  ASSERT_EQ(first.size(), 2U) << "the input counts, and so does the output";
  EXPECT_EQ(first[0].input.size() + first[0].job.output.size(), kMaxClaimedBytes - 1);
  EXPECT_EQ(first[1].id, "b.1");
  const auto second = claim();
  ASSERT_EQ(second.size(), 1U) << "the second delivery is still due";
  EXPECT_EQ(second[0].id, "c.1");
}

/// Sizes around the bounds at which storages change the place of a body.
inline constexpr std::size_t kBodySizes[] = {
    0, (256U << 10) - 1, 256U << 10, (256U << 10) + 1, (1U << 20) + 1, (2U << 20) - 1, 2U << 20, (2U << 20) + 1};

TEST_P(StorageSuite, BodiesOfEachSizeAreKept) {
  for (const std::size_t size : kBodySizes) {
    SCOPED_TRACE(size);
    const JobId id = "j" + std::to_string(size);
    JobSpec job = spec(id);
    job.input = std::string(size, 'i');
    job.webhook = "http://example.com/";
    submit(std::move(job));
    auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_TRUE(claimed[0].input == std::string(size, 'i'));
    EXPECT_EQ(leases().finish(claimed[0].lease, Failed{"no", std::string(size, 'o')}), ReportResult::accepted);
    EXPECT_TRUE(find(id)->output == std::string(size, 'o'));
    const auto owed = claimDue(Millis(1'000));
    ASSERT_EQ(owed.size(), 1U);
    EXPECT_TRUE(owed[0].input == std::string(size, 'i'));
    EXPECT_TRUE(owed[0].job.output == std::string(size, 'o'));

    ASSERT_TRUE(std::holds_alternative<Requeued>(jobs().requeue({"ep", id}, 1, policy_)));
    EXPECT_EQ(find(id)->output, "");
    claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_TRUE(claimed[0].input == std::string(size, 'i'));
    EXPECT_EQ(complete(claimed[0].lease, std::string(size, 'p')), ReportResult::accepted);
    EXPECT_TRUE(find(id)->output == std::string(size, 'p'));
    const auto again = claimDue(Millis(1'000));
    ASSERT_EQ(again.size(), 1U);
    EXPECT_TRUE(again[0].job.output == std::string(size, 'p')) << "the first delivery has a separate snapshot";
  }
}

TEST_P(StorageSuite, RepeatedCallsCompareBodiesOfEachSize) {
  for (const std::size_t size : kBodySizes) {
    SCOPED_TRACE(size);
    const JobId id = "j" + std::to_string(size);
    JobSpec job = spec(id);
    job.input = std::string(size, 'i');
    const auto insert = [&](JobSpec copy) { return jobs().insert(std::move(copy), policy_); };
    EXPECT_TRUE(std::holds_alternative<Inserted>(insert(job)));
    EXPECT_TRUE(std::holds_alternative<Inserted>(insert(job)));
    JobSpec other = job;
    other.input = std::string(size, 'i') + "i";
    EXPECT_THROW((void)insert(other), StorageError);
    const LeaseRef lease = claimOne();
    const std::string output(size, 'o');
    EXPECT_EQ(complete(lease, output), ReportResult::accepted);
    EXPECT_EQ(complete(lease, output), ReportResult::accepted);
    EXPECT_EQ(complete(lease, output + "o"), ReportResult::staleAttempt);
    if (size > 0) {
      EXPECT_EQ(complete(lease, std::string(size, 'p')), ReportResult::staleAttempt);
    }
    EXPECT_TRUE(find(id)->output == output);
  }
}

TEST_P(StorageSuite, AWebhookOutlivesTheLargeBodiesOfItsJob) {
  constexpr std::size_t kSize = 3U << 20;
  JobSpec job = spec("a");
  job.input = std::string(kSize, 'i');
  job.webhook = "http://example.com/";
  submit(std::move(job));
  EXPECT_EQ(complete(claimOne(), std::string(kSize, 'o')), ReportResult::accepted);
  while (jobs().remove("ep", 100) > 0) continue;
  (void)leases().sweep(100);
  EXPECT_FALSE(find("a"));
  const auto owed = claimDue(Millis(1'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_TRUE(owed[0].input == std::string(kSize, 'i'));
  EXPECT_TRUE(owed[0].job.output == std::string(kSize, 'o'));
}

}  // namespace jobq::testkit
