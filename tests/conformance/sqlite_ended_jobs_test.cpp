// Tests of the ended jobs kept in memory by the SQLite storage for waiting callers
// (plugins/storage_sqlite/reads/ended_jobs.h): the first find() after the end has the same answer as a later read of
// the file.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sqlite_work.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {
namespace {

class EndedJobsTest : public CountedSqliteTest {
 protected:
  /// Inserts a job that runs at once, as `/runsync` does with an idle worker.
  LeaseRef runs(JobSpec job) {
    const auto done =
        storage_->insertAndClaim(std::move(job), policy_, std::nullopt, {{"ep", {"worker"}}, holder_, ++calls_});
    return done.claimed.at(0).lease;
  }
  LeaseRef runs(const JobId& id) { return runs(spec(id)); }
  void finish(const LeaseRef& lease, Outcome outcome) {
    clock_.advance(Millis(30));
    ASSERT_EQ(storage_->leases().finish(lease, std::move(outcome)), ReportResult::accepted);
  }
  /// Returns whether find() reads the job from the file.
  bool readsFile(const JobId& id) {
    return stepsOf([&] { (void)find(id); }) > 0;
  }
  /// Compares the kept job with the file's.
  void expectSame(const JobId& id) {
    std::optional<Job> kept;
    EXPECT_EQ(stepsOf([&] { kept = find(id); }), 0) << "the job was not kept";
    std::optional<Job> stored;
    EXPECT_GT(stepsOf([&] { stored = find(id); }), 0) << "the job is still kept";
    ASSERT_TRUE(kept && stored);
    EXPECT_EQ(describe(*kept), describe(*stored));
  }

 private:
  CallId calls_ = 0;
};

TEST_F(EndedJobsTest, TheFirstReadIsEqualToTheFile) {
  JobSpec job = spec("a");
  job.webhook = "http://h/done";
  job.policy.lowPriority = true;
  job.policy.ttl = Millis(60'000);
  finish(runs(job), Completed{R"({"x":1.0})"});
  expectSame("a");
  finish(runs("b"), Failed{"no more paper", "[2]"});
  expectSame("b");
  finish(runs("c"), Completed{});
  expectSame("c");
  const LeaseRef cancelled = runs("d");
  (void)storage_->leases().progress(cancelled, "\"half\"");
  ASSERT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", "d"})));
  expectSame("d");
}

TEST_F(EndedJobsTest, AJobOfASweepIsKeptToo) {
  JobSpec job = spec("a");
  job.policy.executionTimeout = Millis(1'000);
  job.policy.ttl = Millis(600'000);
  runs(job);
  clock_.advance(Millis(1'000));
  (void)storage_->leases().sweep(10);
  expectSame("a");
}

TEST_F(EndedJobsTest, AnotherEndpointFindsNoJob) {
  finish(runs("a"), Completed{"1"});
  EXPECT_FALSE(storage_->jobs().find({"other", "a"}));
  expectSame("a");
}

TEST_F(EndedJobsTest, AJobOfTheQueueIsKeptWithItsTimes) {
  submit("queued");
  clock_.advance(Millis(500));
  finish(claim(1).at(0).lease, Completed{"1"});
  expectSame("queued");
  const LeaseRef first = runs("released");
  clock_.advance(Millis(500));
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{first}), 1U);
  clock_.advance(Millis(500));
  finish(claim(1).at(0).lease, Completed{"1"});
  expectSame("released");
  const LeaseRef failed = runs("retried");
  finish(failed, Failed{"no", {}});
  ASSERT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "retried"}, failed.attempt, policy_)));
  clock_.advance(Millis(500));
  finish(claim(1).at(0).lease, Completed{"1"});
  expectSame("retried");
}

TEST_F(EndedJobsTest, AJobClaimedBeforeTheStartIsRead) {
  const LeaseRef lease = runs("a");
  open();
  finish(lease, Completed{"1"});
  EXPECT_TRUE(readsFile("a"));
}

TEST_F(EndedJobsTest, ALargeOutputIsRead) {
  finish(runs("large"), Completed{"\"" + std::string(40'000, 'x') + "\""});
  EXPECT_TRUE(readsFile("large"));
  finish(runs("sum"), Failed{std::string(20'000, 'e'), "\"" + std::string(20'000, 'x') + "\""});
  EXPECT_TRUE(readsFile("sum"));
}

TEST_F(EndedJobsTest, AChangeOfTheJobIsShown) {
  finish(runs("ttl"), Completed{"1"});
  const auto expiry = storage_->jobs().setTtl({"ep", "ttl"}, Millis(70'000));
  EXPECT_EQ(find("ttl").value().expiresAt, expiry);

  const LeaseRef failed = runs("retried");
  finish(failed, Failed{"no", {}});
  ASSERT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "retried"}, failed.attempt, policy_)));
  EXPECT_EQ(find("retried").value().state, JobState::inQueue);

  finish(runs("removed"), Completed{"1"});
  while (storage_->jobs().remove("ep", 100) > 0) continue;
  EXPECT_FALSE(find("removed"));
}

TEST_F(EndedJobsTest, AnExpiredJobIsAbsent) {
  JobSpec job = spec("a");
  job.policy.ttl = Millis(20'000);
  finish(runs(job), Completed{"1"});
  clock_.advance(Millis(20'000));
  EXPECT_FALSE(find("a"));
}

// The step of the end is undone: the kept job must not show it.
TEST_F(EndedJobsTest, AnUnstoredEndIsNotKept) {
  const LeaseRef lease = runs("a");
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_THROW((void)storage_->leases().finish(lease, Completed{"1"}), StorageError);
  logFaults().writeAnswers = SQLITE_OK;
  EXPECT_EQ(find("a").value().state, JobState::inProgress);
}

// A caller that has read the new state elsewhere must not find the old state: the job is forgotten before the commit.
TEST_F(EndedJobsTest, AChangeIsForgottenBeforeItsCommit) {
  finish(runs("a"), Completed{"1"});
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_THROW((void)storage_->jobs().setTtl({"ep", "a"}, Millis(70'000)), StorageError);
  logFaults().writeAnswers = SQLITE_OK;
  EXPECT_TRUE(readsFile("a"));
}

TEST_F(EndedJobsTest, ManyJobsReplaceEachOther) {
  for (int i = 0; i < 2'000; ++i) finish(runs("job" + std::to_string(i)), Completed{std::to_string(i)});
  for (int i = 0; i < 2'000; ++i) EXPECT_EQ(find("job" + std::to_string(i)).value().output, std::to_string(i));
}

/// Keeps a job with outputs and errors of `bytes` together.
void keep(sqlite::EndedJobs& jobs, const std::string& id, std::size_t bytes) {
  Job job;
  job.id = id;
  job.expiresAt = Instant::max();
  job.output = std::string(bytes / 2, 'x');
  job.error = std::string(bytes - bytes / 2, 'x');
  sqlite::EndedChanges changes;
  changes.keep(std::move(job));
  jobs.apply(changes);
}

/// Reads the jobs "0" to "<many - 1>" and returns the number of kept jobs.
std::size_t countKept(sqlite::EndedJobs& jobs, int many) {
  std::size_t kept = 0;
  for (int i = 0; i < many; ++i) kept += jobs.extractJob({"", std::to_string(i)}, Instant{}) ? 1 : 0;
  return kept;
}

TEST(EndedJobs, TheBytesHaveABoundAndTheNewestJobIsKept) {
  using sqlite::EndedJobs;
  constexpr int kMany = 4'000;
  EndedJobs jobs;
  for (int round = 0; round < 2; ++round) {  // the second one after each job was read
    for (int i = 0; i < kMany; ++i) keep(jobs, std::to_string(i), EndedJobs::kMostOfJob);
    EXPECT_TRUE(jobs.extractJob({"", std::to_string(kMany - 1)}, Instant{}));
    EXPECT_EQ(countKept(jobs, kMany), EndedJobs::kMostBytes / EndedJobs::kMostOfJob - 1);
  }
  for (int i = 0; i < kMany; ++i) keep(jobs, std::to_string(i), 10);
  EXPECT_GT(countKept(jobs, kMany), EndedJobs::kSlots / 2);
}

}  // namespace
}  // namespace jobq::testkit
