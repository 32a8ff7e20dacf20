// Tests of the SQLite storage after a crash: a copy of the files of an open storage equals the state after a crash.
#include "sqlite_bodies_fixture.h"
#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

class Crash : public SqliteBodiesTest {
 protected:
  /// Copies the present files into another directory, and opens the storage there.
  void crash() {
    const std::filesystem::path next = dir_ / "next";
    std::filesystem::create_directory(next);
    for (const char* name : {"jobq.db", "jobq.db-wal"}) std::filesystem::copy_file(dir_ / name, next / name);
    std::filesystem::copy(folder(), next / "bodies");
    storage_.reset();
    storage_ = openAt(next);
    holder_ = storage_->nodes().join("node");
  }
};

TEST_F(Crash, EveryAcknowledgedStepIsThere) {
  open();
  for (int i = 0; i < 6; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    if (i == 1) job.webhook = "http://example.com/";
    submit(std::move(job));
  }
  auto claimed = claim(3);
  ASSERT_EQ(claimed.size(), 3U);
  EXPECT_EQ(storage_->leases().finish(claimed[0].lease, Completed{"[1.0]"}), ReportResult::accepted);
  EXPECT_EQ(storage_->leases().finish(claimed[1].lease, Failed{"no", ""}), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", "j5"})));
  const auto version = std::get<Stored>(storage_->records().create({"key", "k", "", "{}", 0, {}})).version;
  crash();

  EXPECT_EQ(find("j0")->output, "[1.0]");
  EXPECT_EQ(find("j1")->error, "no");
  EXPECT_EQ(find("j2")->state, JobState::inProgress);
  EXPECT_EQ(find("j2")->attempt, claimed[2].lease.attempt);
  EXPECT_EQ(find("j3")->state, JobState::inQueue);
  EXPECT_EQ(find("j5")->state, JobState::cancelled);
  EXPECT_EQ(storage_->records().find("key", "k")->version, version);
  const auto owed = testkit::claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].job.id, "j1");
  const EndpointCounts counts = storage_->jobs().counts("ep");
  EXPECT_EQ(counts.inQueue, 2U);
  EXPECT_EQ(counts.inProgress, 1U);
  EXPECT_EQ(counts.completed, 1U);
  EXPECT_EQ(counts.failed, 1U);
}

TEST_F(Crash, EveryLargeBodyIsThere) {
  open();
  JobSpec hooked = large("ended", 'e');
  hooked.webhook = "http://example.com/";
  submitAndEnd(std::move(hooked));
  const ClaimWant want{"ep", {"w1"}};
  (void)storage_->insertAndClaim(large("runs", 'r'), policy_, std::nullopt, {want, holder_, 1});
  submit(large("waits", 'w'));
  submit(large("removed"));
  EXPECT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", "removed"})));
  crash();

  EXPECT_EQ(find("ended")->output, bodyOf(kLargeBody, 'o'));
  const auto owed = testkit::claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].input, bodyOf(kLargeBody, 'e'));
  EXPECT_EQ(storage_->leases().sweep(100).requeuedAt, std::vector<EndpointId>{"ep"});
  const auto claimed = claim(9);
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(claimed[0].input, bodyOf(kLargeBody, 'r'));
  EXPECT_EQ(claimed[1].input, bodyOf(kLargeBody, 'w'));
}

TEST_F(Crash, AClaimOfTheDeadProcessIsLostAndCounted) {
  open();
  submit("a");
  JobSpec once = spec("b");
  once.maxAttempts = 1;
  submit(std::move(once));
  auto claimed = claim(2);
  ASSERT_EQ(claimed.size(), 2U);
  crash();

  const SweepResult swept = storage_->leases().sweep(100);
  EXPECT_EQ(swept.stopped.size(), 2U);
  EXPECT_EQ(swept.requeuedAt, std::vector<EndpointId>{"ep"});
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "b"}}));
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(find("b")->state, JobState::failed);
  EXPECT_NE(find("b")->error.find("lost 1 time"), std::string::npos) << find("b")->error;
  EXPECT_EQ(storage_->leases().states(std::vector{claimed[0].lease}), std::vector{LeaseState::takenOver});
  EXPECT_EQ(storage_->leases().finish(claimed[0].lease, Completed{"1"}), ReportResult::staleAttempt);
}

TEST_F(Crash, TheQueueGoesOnAfterACrash) {
  open();
  submit("first");
  submit("second");
  EXPECT_EQ(claim(2).size(), 2U);
  for (const JobId id : {"first", "second", "first"}) {
    if (find(id)->state == JobState::inQueue) {
      EXPECT_EQ(claim(1).at(0).lease.job, id);
    }
    const std::uint32_t attempt = find(id)->attempt;
    EXPECT_EQ(storage_->leases().finish({id, attempt}, Failed{"no", ""}), ReportResult::accepted);
    EXPECT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", id}, attempt, policy_)));
  }
  crash();
  submit("third");  // the job comes behind the requeued jobs, whose positions are beyond every job's number
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"second", "first", "third"}));
}

TEST_F(Crash, ABackwardClockKeepsTheOrderOfTheQueue) {
  open();
  clock_.advance(Millis(3'600'000));
  submit("late");
  storage_.reset();
  ManualClock earlier;
  const MapConfig config;
  storage_ = loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so", "sqlite",
                                 PluginEnv{config, earlier, log_, dir_, false});
  submit("early");
  EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).jobs.at(0).id, "early");
  const auto claimed = claim(2);
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(claimed[0].lease.job, "late");
  storage_.reset();  // the storage must end before its clock
}

}  // namespace
}  // namespace jobq::testkit
