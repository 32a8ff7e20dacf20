// Conformance: a job with its input and its API key, and lists by API key and id (sdk/include/jobq/job_store.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline JobSpec ofKey(JobSpec job, std::string key) {
  job.apiKeyId = std::move(key);
  return job;
}

inline std::vector<JobId> idsOf(const JobPage& page) {
  std::vector<JobId> ids;
  for (const Job& job : page.jobs) ids.push_back(job.id);
  return ids;
}

TEST_P(StorageSuite, AJobNamesItsApiKeyInEveryState) {
  for (JobState state : {JobState::inQueue, JobState::inProgress, JobState::completed, JobState::failed}) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    submit(ofKey(spec(id), "key of " + id));
    LeaseRef lease;
    if (state != JobState::inQueue) lease = claimOne();
    if (state == JobState::completed) {
      EXPECT_EQ(complete(lease), ReportResult::accepted);
    }
    if (state == JobState::failed) {
      EXPECT_EQ(fail(lease), ReportResult::accepted);
    }
    for (int reads = 0; reads < 2; ++reads) EXPECT_EQ(find(id)->apiKeyId, "key of " + id) << nameOf(state);
    EXPECT_EQ(jobs().list({"ep", state}, {}).jobs.at(0).apiKeyId, "key of " + id) << nameOf(state);
    if (state == JobState::inQueue) {
      EXPECT_EQ(jobs().purgeQueued("ep"), 1U);
    }
  }
}

TEST_P(StorageSuite, AnInputIsReadOnlyIfAskedFor) {
  for (const std::size_t size : {std::size_t{10}, std::size_t{100'000}, std::size_t{2'000'000}}) {
    const JobId id = "j" + std::to_string(size);
    JobSpec job = spec(id);
    job.input = "{\"x\":\"" + std::string(size, 'x') + "\"}";
    const std::string input = job.input;
    submit(std::move(job));
    EXPECT_EQ(complete(claimOne(), "7"), ReportResult::accepted);
    EXPECT_EQ(find(id)->input, "");
    EXPECT_EQ(find(id)->bodyBytes, 1U);
    const auto whole = jobs().find({"ep", id}, kAnyBytes, JobExtent::input);
    ASSERT_TRUE(whole);
    EXPECT_TRUE(whole->input == input);
    EXPECT_EQ(whole->output, "7");
    EXPECT_EQ(whole->bodyBytes, input.size() + 1);
    EXPECT_TRUE(whole->isWhole());
    EXPECT_TRUE(jobs().find({"ep", id}, input.size() + 1, JobExtent::input)->isWhole());
    const auto bare = jobs().find({"ep", id}, input.size(), JobExtent::input);
    EXPECT_EQ(bare->input + bare->output, "");
    EXPECT_EQ(bare->bodyBytes, input.size() + 1);
    EXPECT_FALSE(bare->isWhole());
  }
  EXPECT_FALSE(jobs().find({"ep", "none"}, kAnyBytes, JobExtent::input));
}

TEST_P(StorageSuite, AListIsFilteredByApiKeyAndId) {
  for (int i = 0; i < 6; ++i) submit(ofKey(spec((i < 3 ? "a" : "b") + std::to_string(i)), i % 2 == 0 ? "even" : "odd"));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  EXPECT_EQ(idsOf(jobs().list({"ep", {}, "even"}, {})), (std::vector<JobId>{"b4", "a2", "a0"}));
  EXPECT_EQ(idsOf(jobs().list({"ep", {}, "", "a"}, {})), (std::vector<JobId>{"a2", "a1", "a0"}));
  EXPECT_EQ(idsOf(jobs().list({"ep", JobState::inQueue, "even", "a"}, {})), std::vector<JobId>{"a2"});
  EXPECT_EQ(idsOf(jobs().list({"ep", JobState::completed, "even"}, {})), std::vector<JobId>{"a0"});
  EXPECT_EQ(jobs().list({"ep", JobState::inQueue, "even", "a"}, {}).total, 5U) << "the total has any key and id";
  EXPECT_EQ(idsOf(jobs().list({"ep", {}, "nobody"}, {})), std::vector<JobId>{});
}

TEST_P(StorageSuite, ACursorGoesThroughAFilteredList) {
  for (int i = 0; i < 7; ++i) submit(ofKey(spec("j" + std::to_string(i)), i % 2 == 0 ? "even" : "odd"));
  PageWindow window{0, 2};
  std::vector<JobId> ids;
  for (int pages = 0; pages < 9; ++pages) {
    const JobPage page = jobs().list({"ep", {}, "even"}, window);
    const std::vector<JobId> more = idsOf(page);
    ids.insert(ids.end(), more.begin(), more.end());
    window.cursor = page.next;
    if (page.next == 0) break;
  }
  EXPECT_EQ(ids, (std::vector<JobId>{"j6", "j4", "j2", "j0"}));
}

}  // namespace jobq::testkit
