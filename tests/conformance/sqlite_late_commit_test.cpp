// Tests of outcomes reported in time and committed after the deadline and after a sweep: such outcomes count.
#include <future>

#include "open_sqlite.h"
#include "sqlite_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq::testkit {
namespace {

constexpr Millis kTimeout{60'000};

class LateCommit : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    open();
    JobSpec job = spec("a");
    job.policy.executionTimeout = kTimeout;
    submit(std::move(job));
    storage_.reset();
    sqlite_ = std::make_unique<OpenSqlite>(file(), clock_, log_);
  }
  void TearDown() override {
    sqlite_.reset();
    SqliteTest::TearDown();
  }

  LeaseRef claimOne() { return leases().claim(std::vector{ClaimWant{"ep", {"w"}}}, holder_, 1).jobs.at(0).lease; }

  LeaseStore& leases() { return sqlite_->leases; }
  NodeStore& nodes() { return sqlite_->nodes; }

  std::unique_ptr<OpenSqlite> sqlite_;
};

TEST_F(LateCommit, ASweepLeavesAReportedJobAlone) {
  const LeaseRef lease = claimOne();
  clock_.advance(kTimeout);
  {
    const sql::ReportsUnderWay::Entry report(sqlite_->reports, lease);
    const SweepResult swept = leases().sweep(1);
    EXPECT_TRUE(swept.finished.empty());
    EXPECT_TRUE(swept.stopped.empty());
    EXPECT_FALSE(swept.more) << "a sweep at once would find the same job";
  }
  EXPECT_EQ(leases().sweep(1).finished.size(), 1U) << "the report failed: the job has run too long";
  EXPECT_EQ(leases().finish(lease, Completed{"1"}), ReportResult::staleAttempt);
}

// A shutdown returns the jobs of handlers without an end in time, while the last reports wait for their commits.
TEST_F(LateCommit, AReleaseLeavesAReportedJobAlone) {
  const LeaseRef lease = claimOne();
  {
    const sql::ReportsUnderWay::Entry report(sqlite_->reports, lease);
    EXPECT_EQ(testkit::release(leases(), std::vector{lease}), 0U);
  }
  EXPECT_EQ(leases().finish(lease, Completed{"1"}), ReportResult::accepted);
}

// A node takes the job of a lost worker back, while a report of the worker waits for its commit.
TEST_F(LateCommit, ALossLeavesAReportedJobAlone) {
  const LeaseRef lease = claimOne();
  {
    const sql::ReportsUnderWay::Entry report(sqlite_->reports, lease);
    const SweepResult lost = testkit::lose(leases(), std::vector{lease});
    EXPECT_TRUE(lost.stopped.empty());
    EXPECT_TRUE(lost.requeuedAt.empty());
  }
  EXPECT_EQ(leases().finish(lease, Completed{"1"}), ReportResult::accepted);
}

TEST_F(LateCommit, AReportOfAFormerAttemptIsNoReason) {
  const LeaseRef lease = claimOne();
  clock_.advance(kTimeout);
  const sql::ReportsUnderWay::Entry report(sqlite_->reports, {lease.job, lease.attempt - 1});
  EXPECT_EQ(leases().sweep(1).finished.size(), 1U);
}

TEST_F(LateCommit, AReportedJobIsNotTakenFromItsWorker) {
  const LeaseRef lease = claimOne();
  (void)nodes().join("node");
  {
    const sql::ReportsUnderWay::Entry report(sqlite_->reports, lease);
    EXPECT_TRUE(leases().sweep(1).requeuedAt.empty());
  }
  EXPECT_EQ(leases().sweep(1).requeuedAt.size(), 1U);
}

// A large write of another caller is under way when the outcome arrives, so the turn of the sweep comes before the
// outcome.
TEST_F(LateCommit, ALargeOutcomeIsNotOvertakenBySweeps) {
  constexpr std::size_t kLarge = 5UL << 20;
  const LeaseRef lease = claimOne();
  std::promise<void> begun;
  std::promise<void> released;
  auto other = std::async(std::launch::async, [&] {
    return sqlite_->writer.write(
        [&](sqlite::Step&) {
          begun.set_value();
          auto isReleased = released.get_future();
          resultOf("the test to release the other caller", isReleased);
          return true;
        },
        kLarge);
  });
  auto hasBegun = begun.get_future();
  resultOf("the other caller's write", hasBegun);
  auto finished = std::async(std::launch::async,
                             [&] { return leases().finish(lease, Completed{'"' + std::string(kLarge, 'x') + '"'}); });
  waitFor("the outcome to be under way", [&] { return sqlite_->reports.contains(lease); });
  clock_.advance(kTimeout);
  auto swept = std::async(std::launch::async, [&] { return leases().sweep(100); });
  released.set_value();
  EXPECT_TRUE(resultOf("the sweep", swept).finished.empty());
  EXPECT_EQ(resultOf("the outcome", finished), ReportResult::accepted);
  EXPECT_TRUE(resultOf("the other caller's answer", other));
  EXPECT_FALSE(sqlite_->reports.contains(lease));
}

}  // namespace
}  // namespace jobq::testkit
