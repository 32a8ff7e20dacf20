// Conformance: operations with a bound on the bytes that they read or remove (job_store.h, lease_store.h,
// chunk_store.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AnOutputOverTheLimitIsLeftOutAndTheSizeIsReturned) {
  for (const std::uint64_t size : {20UL, 300UL << 10}) {
    const JobId id = "a" + std::to_string(size);
    submit(id);
    const std::string output = '"' + std::string(size - 2, 'x') + '"';
    EXPECT_EQ(leases().finish(claimOne(), Completed{output}), ReportResult::accepted);
    const auto whole = jobs().find({"ep", id}, size);
    ASSERT_TRUE(whole);
    EXPECT_TRUE(whole->isWhole());
    EXPECT_EQ(whole->output, output);
    const auto bounded = jobs().find({"ep", id}, size - 1);
    ASSERT_TRUE(bounded);
    EXPECT_FALSE(bounded->isWhole());
    EXPECT_EQ(bounded->bodyBytes, size);
    EXPECT_EQ(bounded->output, "");
    EXPECT_EQ(bounded->state, JobState::completed);
    EXPECT_EQ(find(id)->output, output) << "a bounded read removes no output";
  }
  EXPECT_FALSE(jobs().find({"ep", "none"}, 1));
}

TEST_P(StorageSuite, ProgressCountsAsOutput) {
  const LeaseRef lease = bring("a", JobState::inProgress);
  EXPECT_EQ(leases().progress(lease, "[1,2,3]"), ReportResult::accepted);
  EXPECT_EQ(jobs().find({"ep", "a"}, 7)->progress, "[1,2,3]");
  const auto bounded = jobs().find({"ep", "a"}, 6);
  EXPECT_EQ(bounded->progress, "");
  EXPECT_EQ(bounded->bodyBytes, 7U);
}

TEST_P(StorageSuite, AClaimEndsBeforeAnInputWithoutRoom) {
  const auto put = [this](const JobId& id, std::uint64_t size, const EndpointId& endpoint = "ep") {
    JobSpec job = spec(id, endpoint);
    job.input = "{\"n\":\"" + std::string(size - 8, 'x') + "\"}";
    submit(std::move(job));
  };
  put("a", 300UL << 10);
  put("b", 20UL << 10);
  put("c", 30UL << 10);
  put("d", 20);
  put("other", 20, "other");
  const std::vector<ClaimWant> wants{{"ep", {"w1", "w2", "w3", "w4"}}, {"other", {"w5"}}};
  const auto claimWithin = [&](CallId id, std::uint64_t mostBytes) {
    const ClaimResult claim = leases().claim(wants, holder_, id, mostBytes);
    std::vector<JobId> ids;
    for (const ClaimedJob& job : claim.jobs) ids.push_back(job.lease.job);
    for (const EndpointId& endpoint : claim.left) ids.push_back("more at " + endpoint);
    return ids;
  };
  using Ids = std::vector<JobId>;
  EXPECT_EQ(claimWithin(901, (300UL << 10) - 1), (Ids{"other", "more at ep"})) << "each queue stays in order";
  EXPECT_EQ(claimWithin(902, 330UL << 10), (Ids{"a", "b", "more at ep"}));
  EXPECT_EQ(claimWithin(903, 0), (Ids{"more at ep"}));
  EXPECT_EQ(claimWithin(904, 30UL << 10), (Ids{"c", "d"})) << "a small input has always room";
}

TEST_P(StorageSuite, ALogIsReadInParts) {
  const LeaseRef lease = bring("a", JobState::inProgress);
  const auto log = [&](std::uint64_t first, const std::vector<std::string>& texts) {
    std::vector<LogLine> lines;
    for (const std::string& text : texts) lines.push_back({{}, LogLevel::information, text});
    EXPECT_EQ(chunks().appendLog(lease, first, std::move(lines)), ReportResult::accepted);
  };
  const auto read = [&](const LogPosition& from, std::size_t maxBytes) {
    const auto part = chunks().readLog({"ep", "a"}, from, maxBytes);
    std::string text;
    for (const LogLine& line : part.value().lines) text += line.text;
    return part->more ? text + "+" : text;
  };
  EXPECT_EQ(read({}, 100), "");
  const Instant first = clock_.now();
  log(0, {"a1", "a2", "a3"});
  clock_.advance(Millis(5));
  log(3, {"b1", "b2"});
  EXPECT_EQ(read({}, 100), "a1a2a3b1b2");
  EXPECT_EQ(read({}, 1), "a1+") << "a part has a line even without room";
  EXPECT_EQ(read({first, 1}, 4), "a2a3+");
  EXPECT_EQ(read({first, 3}, 100), "b1b2");
  EXPECT_EQ(read({clock_.now(), 0}, 4), "b1b2");
  EXPECT_EQ(read({clock_.now(), 2}, 100), "");
  EXPECT_EQ(read({first + Millis(1), 7}, 2), "b1+") << "only lines of the position's time are skipped";
  EXPECT_FALSE(chunks().readLog({"ep", "none"}, {}, 1));
}

// A million chunks removed in one step would keep all other writes waiting.
TEST_P(StorageSuite, AJobWithManyChunksGoesWithinSomeSteps) {
  const auto run = [this](const JobId& id) {
    JobSpec job = spec(id);
    job.policy.ttl = Millis(10'000);
    submit(std::move(job));
    EXPECT_EQ(append(claimOne(), std::vector<Chunk>(20'500, Chunk{"1", "", false})), ReportResult::accepted);
  };
  run("a");
  clock_.advance(Millis(10'000));
  std::size_t removed = 0;
  bool hasMore = true;
  for (int sweeps = 0; hasMore && sweeps < 10; ++sweeps) {
    const SweepResult swept = storage_->leases().sweep(10);
    EXPECT_FALSE(find("a"));
    removed += swept.removed;
    hasMore = swept.more;
  }
  EXPECT_EQ(removed, 1U);
  run("b");
  EXPECT_EQ(consume({"ep", "b"}, 1)->next, 1U);
  constexpr std::size_t kBatch = 5;
  int steps = 0;
  while (storage_->jobs().remove("ep", kBatch) >= kBatch && steps < 10) ++steps;
  EXPECT_LT(steps, 10);
  EXPECT_FALSE(find("b"));
}

// The removal of the former chunks may need several writes, and no reader may see the chunks in between.
TEST_P(StorageSuite, AReturnedJobHasNoFormerChunk) {
  const std::vector<std::pair<const char*, std::function<void(const LeaseRef&)>>> ways{
      {"release", [this](const LeaseRef& lease) { EXPECT_EQ(testkit::release(leases(), std::vector{lease}), 1U); }},
      {"loss",
       [this](const LeaseRef& lease) { EXPECT_EQ(testkit::lose(leases(), std::vector{lease}).requeuedAt.size(), 1U); }},
      {"retry",
       [this](const LeaseRef& lease) {
         EXPECT_EQ(fail(lease), ReportResult::accepted);
         EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", lease.job}, policy_)));
       }},
      {"end of the node's life",
       [this](const LeaseRef&) {
         newLife();
         EXPECT_EQ(sweep().requeuedAt.size(), 1U);
       }},
  };
  const auto chunksOf = [this](const JobId& id) {
    const JobKey key{"ep", id};
    EXPECT_EQ(jobs().summaries(std::vector{key}).at(0).value().chunks, chunks().read(key, 0, 1'000).value().next) << id;
    return outputsOf(chunks().read(key, 0, 1'000).value());
  };
  int count = 0;
  for (const auto& [way, goBack] : ways) {
    const JobId id = "a" + std::to_string(++count);
    submit(id);
    const LeaseRef former = claimOne();
    EXPECT_EQ(append(former, std::vector<Chunk>(20'500, Chunk{"1", "", false})), ReportResult::accepted);
    EXPECT_EQ(consume({"ep", id}, 10)->next, 10U);
    goBack(former);
    EXPECT_EQ(chunksOf(id), "") << way;
    EXPECT_TRUE(taken(id).empty()) << way;
    if (GetParam().durable) reopen();

    const LeaseRef next = claimOne();
    EXPECT_EQ(chunks().append(next, 0, std::vector<Chunk>(3, Chunk{"2", "", false})), ReportResult::accepted) << way;
    EXPECT_EQ(chunksOf(id), "222") << way;
    int sweeps = 0;
    while (sweep().more && sweeps < 10) ++sweeps;
    EXPECT_LT(sweeps, 10) << way;
    EXPECT_EQ(chunks().append(next, 3, {Chunk{"3", "", false}}), ReportResult::accepted) << way;
    EXPECT_EQ(chunksOf(id), "2223") << way;
    EXPECT_EQ(taken(id).size(), 4U) << way;
    EXPECT_EQ(complete(next), ReportResult::accepted) << way;
  }
}

}  // namespace jobq::testkit
