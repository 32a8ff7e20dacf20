// Tests of the places of small bodies on SQLite (plugins/storage_sqlite/job_rows.h, BriefBodies): the row of the job if
// the insert includes the end, otherwise the tables of inputs and outputs.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sqlite_work.h"

namespace jobq::testkit {
namespace {

class BriefJobsTest : public CountedSqliteTest {
 protected:
  /// Returns the ids of the endpoint's queued jobs, listed in pages of `limit` jobs.
  std::vector<JobId> listQueued(std::size_t limit) {
    std::vector<JobId> ids;
    PageWindow window{0, limit, 0};
    do {
      const JobPage page = storage_->jobs().list({"ep", JobState::inQueue}, window);
      for (const Job& job : page.jobs) ids.push_back(job.id);
      window.cursor = page.next;
    } while (window.cursor != 0);
    return ids;
  }

  void insertEnded(const JobSpec& job, const Outcome& outcome) {
    (void)storage_->jobs().insert(JobSpec(job), policy_, {.start = Begun{"w", holder_, Millis(0), &outcome}});
  }
  void reopen() {
    storage_.reset();
    open();
  }
  std::int64_t inputs() { return ask(file(), "SELECT count(*) FROM job_input"); }
  std::int64_t outputs() { return ask(file(), "SELECT count(*) FROM job_output"); }

  static std::string text(std::size_t bytes) { return "\"" + std::string(bytes - 2, 't') + "\""; }
  static JobSpec specOf(const JobId& id, std::size_t inputBytes) {
    JobSpec job = spec(id);
    job.input = text(inputBytes);
    return job;
  }

  /// Returns the pages that the commits of `action` add to the write-ahead log.
  template <class Action>
  std::int64_t pagesOf(Action&& action) {
    constexpr std::int64_t kFrame = 4'096 + 24;
    const auto size = [this] {
      return static_cast<std::int64_t>(std::filesystem::file_size(file().string() + "-wal"));
    };
    const std::int64_t before = size();
    action();
    return (size() - before) / kFrame;
  }
};

TEST_F(BriefJobsTest, TheRowHoldsSmallBodies) {
  insertEnded(specOf("a", 300), Completed{text(212)});
  insertEnded(specOf("b", 200), Failed{std::string(100, 'e'), text(212)});
  EXPECT_EQ(inputs(), 0);
  EXPECT_EQ(outputs(), 0);
  reopen();
  EXPECT_EQ(find("a")->output, text(212));
  EXPECT_EQ(find("a")->error, "");
  EXPECT_EQ(find("b")->output, text(212));
  EXPECT_EQ(find("b")->error, std::string(100, 'e'));
  const auto page = storage_->jobs().list({"ep", JobState::failed}, {0, 10, 0});
  ASSERT_EQ(page.jobs.size(), 1U);
  EXPECT_EQ(page.jobs[0].error, std::string(100, 'e'));
  EXPECT_EQ(storage_->leases().finish({"b", 1}, Failed{std::string(100, 'e'), text(212)}), ReportResult::accepted)
      << "a repeated report";
  EXPECT_EQ(storage_->leases().finish({"b", 1}, Failed{"another", text(212)}), ReportResult::staleAttempt);
}

TEST_F(BriefJobsTest, OtherBodiesAreInTheirTables) {
  insertEnded(specOf("a", 300), Completed{text(213)});
  EXPECT_EQ(inputs(), 1) << "the input is a byte too large for the row";
  JobSpec job = specOf("b", 10);
  job.webhook = "http://h/done";
  insertEnded(job, Completed{"1"});
  job = specOf("c", 10);
  job.s3Config = "sealed";
  insertEnded(job, Completed{"1"});
  EXPECT_EQ(inputs(), 3);
  EXPECT_EQ(outputs(), 3);
  EXPECT_EQ(find("a")->output, text(213));
  EXPECT_EQ(find("c")->output, "1");
}

TEST_F(BriefJobsTest, ARepeatedInsertFindsTheInputOfTheRow) {
  insertEnded(spec("a"), Completed{"1"});
  EXPECT_TRUE(submitted("a"));
  JobSpec other = spec("a");
  other.input = "2";
  EXPECT_THROW((void)storage_->jobs().insert(std::move(other), policy_), StorageError);
  JobSpec ofAnotherKey = spec("a");
  ofAnotherKey.apiKeyId = "another";
  EXPECT_THROW((void)storage_->jobs().insert(std::move(ofAnotherKey), policy_), StorageError);
}

TEST_F(BriefJobsTest, NoRowIsLeftOfARemovedJob) {
  insertEnded(spec("a"), Failed{"no", "[1]"});
  ASSERT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a"}, 1, policy_)));
  EXPECT_EQ(inputs(), 1);
  EXPECT_EQ(ask(file(), "SELECT count(*) FROM job WHERE brief_input IS NOT NULL"), 0);
  insertEnded(spec("b"), Completed{"1"});
  EXPECT_EQ(storage_->leases().finish(claim(1).at(0).lease, Completed{"2"}), ReportResult::accepted);
  EXPECT_EQ(outputs(), 1);
  EXPECT_EQ(storage_->jobs().remove("ep", 100), 2U);
  EXPECT_EQ(inputs(), 0);
  EXPECT_EQ(outputs(), 0);
}

// The rows of ended jobs are wide. A list of few queued jobs reads none of them.
TEST_F(BriefJobsTest, AListOfFewQueuedJobsReadsNoOtherJob) {
  constexpr int kEnded = 2'000;
  submit("a");
  for (int number = 0; number < kEnded; ++number) insertEnded(spec(std::to_string(number)), Completed{"1"});
  submit("b");
  std::vector<JobId> listed;
  EXPECT_LT(stepsOf([&] { listed = listQueued(10); }), kEnded);
  EXPECT_EQ(listed, (std::vector<JobId>{"b", "a"}));
  submit("c");
  EXPECT_EQ(listQueued(2), (std::vector<JobId>{"c", "b", "a"}));
}

TEST_F(BriefJobsTest, ManyQueuedJobsAreListedInTheSameOrder) {
  constexpr int kJobs = 2'010;  // more than a list collects
  std::vector<JobId> expected;
  for (int number = 0; number < kJobs; ++number) {
    const JobId id = "q" + std::to_string(number);
    submit(id);
    expected.insert(expected.begin(), id);
    if (number % 100 == 0) insertEnded(spec(std::to_string(number)), Completed{"1"});
  }
  EXPECT_EQ(listQueued(700), expected);
  EXPECT_EQ(claim(20).size(), 20U);
  expected.resize(expected.size() - 20);
  EXPECT_EQ(listQueued(700), expected);
}

// Counts the pages of the log. Bodies in tables of their own took three pages for each job.
TEST_F(BriefJobsTest, ACommitWritesAboutOnePage) {
  constexpr int kJobs = 100;
  insertEnded(spec("first"), Completed{"1"});
  const std::int64_t pages = pagesOf([this] {
    for (int number = 0; number < kJobs; ++number) insertEnded(spec(std::to_string(number)), Completed{"1"});
  });
  EXPECT_GE(pages, kJobs);
  EXPECT_LE(pages, kJobs * 3 / 2);
}

// Ends in another order than the submissions do not split the pages of the outputs: each full page has four outputs.
TEST_F(BriefJobsTest, OutputsAreAppendedInAnyOrderOfTheEnds) {
  constexpr std::size_t kJobs = 64;
  const std::string output = text(950);
  for (std::size_t number = 0; number < kJobs; ++number) submit(std::to_string(number));
  auto claimed = claim(kJobs);
  ASSERT_EQ(claimed.size(), kJobs);
  for (std::size_t at = 0; at < kJobs; ++at) std::swap(claimed[at], claimed[at * 29 % kJobs]);
  for (const ClaimedJob& job : claimed) {
    ASSERT_EQ(storage_->leases().finish(job.lease, Completed{output}), ReportResult::accepted);
  }
  EXPECT_EQ(ask(file(), "SELECT count(*) FROM dbstat WHERE name = 'job_output' AND pagetype = 'leaf'"), kJobs / 4);
  for (const ClaimedJob& job : claimed) EXPECT_EQ(find(job.lease.job)->output, output);
}

TEST_F(BriefJobsTest, AnEarlierFileKeepsItsOutputs) {
  for (const char* id : {"a", "b", "c", "waits"}) submit(id);
  const auto claimed = claim(3);
  EXPECT_EQ(storage_->leases().finish(claimed.at(2).lease, Failed{"no", "3"}), ReportResult::accepted);
  EXPECT_EQ(storage_->leases().finish(claimed.at(0).lease, Completed{"1"}), ReportResult::accepted);
  EXPECT_EQ(storage_->leases().finish(claimed.at(1).lease, Completed{}), ReportResult::accepted);
  insertEnded(spec("brief"), Completed{"4"});
  storage_.reset();
  runScript(file(), kBackToVersion11);
  open();
  EXPECT_EQ(ask(file(), "PRAGMA user_version"), 13);
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(find("b")->output, "");
  EXPECT_EQ(find("c")->output, "3");
  EXPECT_EQ(find("c")->error, "no");
  EXPECT_EQ(find("brief")->output, "4");
  EXPECT_EQ(find("waits")->output, "");
  EXPECT_EQ(storage_->leases().finish(claim(1).at(0).lease, Completed{"5"}), ReportResult::accepted);
  EXPECT_EQ(find("waits")->output, "5");
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(storage_->jobs().remove("ep", 100), 5U);
  EXPECT_EQ(inputs(), 0);
  EXPECT_EQ(outputs(), 0);
}

}  // namespace
}  // namespace jobq::testkit
