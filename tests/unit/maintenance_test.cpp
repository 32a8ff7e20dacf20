// Tests of the maintenance services: the sweeper (core/maintenance/sweeper.h), the removal of deleted endpoints
// (core/maintenance/endpoint_remover.h), and the bounds on owed webhooks (core/maintenance/outbox_cleaner.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "core/maintenance/endpoint_remover.h"
#include "core/maintenance/lost_jobs.h"
#include "core/maintenance/outbox_cleaner.h"
#include "core/maintenance/sweeper.h"
#include "jobq/error.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SweeperTest : public testing::Test {
 protected:
  std::unique_ptr<Sweeper> sweeper(std::function<void()> first = {}, std::function<void()> last = {}) {
    listener_ = std::make_unique<test::CallingSweepListener>([this](const SweepResult& swept) { heard(swept); },
                                                             std::move(first), std::move(last));
    auto sweeper = std::make_unique<Sweeper>(*storage_, storage_.clock, storage_.log);
    sweeper->setListener(*listener_);
    return sweeper;
  }
  void heard(const SweepResult& swept) {
    ++sweeps_;
    finished_ += swept.finished.size();
  }
  void insertExpired(int count) {
    for (int i = 0; i < count; ++i) storage_.insert("j" + std::to_string(i));
    storage_.clock.advance(Millis(86'400'000));
  }

  test::UnitStorage storage_;
  std::atomic<int> sweeps_ = 0;
  std::atomic<std::size_t> finished_ = 0;
  std::unique_ptr<test::CallingSweepListener> listener_;
};

TEST_F(SweeperTest, SweepsAllExpiredJobs) {
  insertExpired(1'201);
  sweeper()->sweepAll();
  EXPECT_GE(sweeps_, 3) << "the sweep has bounded batches";
  EXPECT_EQ(storage_.real->leases().sweep(1'000).removed, 0U);
}

// The lists of the batch are lost with its answer. The listener hears so before the next batch.
TEST_F(SweeperTest, ABatchWithoutAnAnswerIsMadeKnown) {
  const auto sweeping = sweeper();
  storage_.insert("late");
  (void)storage_.claim();
  storage_.clock.advance(Millis(600'000));
  storage_.faults.failCall("leases.sweep", 1, fault::CallFault::done);
  EXPECT_THROW(sweeping->sweepAll(), OutcomeUnknown);
  EXPECT_EQ(listener_->unanswered(), 0);
  EXPECT_EQ(finished_, 0U) << "the job has ended without a notification";
  listener_->failOnce();
  EXPECT_THROW(sweeping->sweepAll(), StorageError);
  EXPECT_EQ(listener_->unanswered(), 1);
  EXPECT_FALSE(sweeping->endOverdue());
  EXPECT_EQ(listener_->unanswered(), 2) << "the listener has failed, so the call is repeated";
  sweeping->sweepAll();
  EXPECT_EQ(listener_->unanswered(), 2);
}

TEST_F(SweeperTest, ARecoveryLeavesExpiredJobsToLaterSweeps) {
  insertExpired(2'500);
  for (int i = 0; i < 700; ++i) {
    storage_.insert("late" + std::to_string(i));
    (void)storage_.claim();
  }
  storage_.clock.advance(Millis(600'000));
  const auto recovering = sweeper();
  EXPECT_TRUE(recovering->endOverdue());
  EXPECT_EQ(finished_, 700U) << "the recovery ends all overdue jobs";
  EXPECT_LE(sweeps_, 3);
  EXPECT_GT(storage_.real->leases().sweep(1).removed, 0U);
  recovering->sweepAll();
  EXPECT_FALSE(recovering->endOverdue());
}

TEST_F(SweeperTest, AStopWaitsForASingleBatch) {
  insertExpired(1'201);
  const auto stopped = sweeper();
  stopped->stop();
  stopped->sweepAll();
  EXPECT_EQ(sweeps_, 1);
  EXPECT_GT(storage_.real->leases().sweep(1'000).removed, 0U);
}

TEST_F(SweeperTest, AnOverlongJobIsReported) {
  storage_.insert("a");
  (void)storage_.claim();
  storage_.clock.advance(Millis(600'000));
  sweeper()->sweepAll();
  EXPECT_EQ(finished_, 1U);
  EXPECT_EQ(storage_.stateOf("a"), JobState::timedOut);
}

TEST_F(SweeperTest, RunsOnceASecondBetweenTheOtherTasks) {
  std::vector<std::string> done;
  Mutex mutex;
  const auto task = [&](const std::string& name) {
    return [&, name] {
      Lock lock(mutex);
      done.push_back(name + " after " + std::to_string(sweeps_));
    };
  };
  const auto each = sweeper(task("first"), task("last"));
  const auto count = [&] {
    Lock lock(mutex);
    return done.size();
  };
  each->start();
  storage_.clock.awaitWaiter(Millis(1'000), Millis(1'000));
  EXPECT_EQ(count(), 0U);
  storage_.clock.advance(Millis(1'000));
  ASSERT_TRUE(holdsSoon([&] { return count() == 2; })) << "the tasks were not done";
  storage_.clock.awaitWaiter(Millis(1'000), Millis(1'000));
  storage_.clock.advance(Millis(1'000));
  ASSERT_TRUE(holdsSoon([&] { return count() == 4; })) << "the tasks were not done again";
  each->stop();
  EXPECT_THAT(done, ElementsAre("first after 0", "last after 1", "first after 1", "last after 2"));
}

TEST_F(SweeperTest, AFailedTaskDoesNotDelayTheOtherTasks) {
  std::atomic<int> last = 0;
  const auto each = sweeper([] { throw Error("the first one failed"); },
                            [&last] {
                              ++last;
                              throw Error("the last one failed");
                            });
  storage_.faults.failNext("leases.sweep");
  each->start();
  storage_.clock.awaitWaiter(Millis(1'000), Millis(1'000));
  storage_.clock.advance(Millis(1'000));
  ASSERT_TRUE(holdsSoon([&] { return last == 1; })) << "the last task was not done";
  storage_.clock.awaitWaiter(Millis(1'000), Millis(1'000));
  EXPECT_EQ(sweeps_, 0);
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("the first one failed")));
  storage_.clock.advance(Millis(1'000));
  ASSERT_TRUE(holdsSoon([&] { return last == 2; })) << "the tasks were not done again";
  EXPECT_EQ(sweeps_, 1);
}

class EndpointRemoverTest : public testing::Test, private LeavingEndpoints, private EndpointActivity {
 protected:
  std::vector<EndpointId> leaving() const override { return leaving_; }
  bool isInUse(const EndpointId& id) const override { return inUse_.contains(id); }
  void forget(const EndpointId& id) override { forgotten_.push_back(id); }
  bool hasNoActiveWorkers(const EndpointId& id) const override { return !running_.contains(id); }
  void announceRemoved(const EndpointId& id) override { announced_.push_back(id); }

  void insert(int count, const EndpointId& endpoint) {
    for (int i = 0; i < count; ++i) storage_.insert(endpoint + "-" + std::to_string(i), endpoint);
  }
  std::size_t jobsOf(const EndpointId& endpoint) { return storage_.real->jobs().list({endpoint, {}}, {}).total; }

  test::UnitStorage storage_;
  std::vector<EndpointId> leaving_;
  std::set<EndpointId> running_;
  std::set<EndpointId> inUse_;
  std::vector<EndpointId> announced_;
  std::vector<EndpointId> forgotten_;
  EndpointRemover remover_{{storage_->jobs(), *this, *this, storage_.clock}, Millis(0)};
  EndpointRemover late_{{storage_->jobs(), *this, *this, storage_.clock}, Millis(3'000)};
};

TEST_F(EndpointRemoverTest, ADeletedEndpointIsForgottenAfterTheRemovalOfTheJobs) {
  insert(3, "gone");
  insert(3, "stays");
  leaving_ = {"gone"};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
  EXPECT_EQ(jobsOf("stays"), 3U);
  EXPECT_THAT(announced_, ElementsAre("gone"));
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
}

TEST_F(EndpointRemoverTest, AnEndpointWithoutJobsIsForgottenWithoutAWord) {
  leaving_ = {"gone"};
  remover_.step();
  EXPECT_THAT(announced_, IsEmpty());
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
}

TEST_F(EndpointRemoverTest, RunningJobsDelayTheRemoval) {
  insert(3, "gone");
  leaving_ = {"gone"};
  running_ = {"gone"};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 3U);
  EXPECT_THAT(forgotten_, IsEmpty());
  running_ = {};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
}

TEST_F(EndpointRemoverTest, AnEndpointWithACallUnderWayIsNotForgotten) {
  insert(3, "gone");
  leaving_ = {"gone"};
  inUse_ = {"gone"};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
  EXPECT_THAT(forgotten_, IsEmpty());
  insert(1, "gone");
  inUse_ = {};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
}

// Another node learns of the deletion a little later, and may insert a job until then.
TEST_F(EndpointRemoverTest, OnASharedStorageAnEndpointIsRemovedWhenAllNodesKnow) {
  insert(1, "gone");
  leaving_ = {"gone"};
  late_.step();
  storage_.clock.advance(Millis(2'999));
  late_.step();
  EXPECT_EQ(jobsOf("gone"), 1U);
  storage_.clock.advance(Millis(1));
  late_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
  leaving_ = {};
  late_.step();
  leaving_ = {"gone"};
  insert(1, "gone");
  late_.step();
  EXPECT_EQ(jobsOf("gone"), 1U) << "the time counts from each deletion";
}

TEST_F(EndpointRemoverTest, AStepIsABoundedPieceOfWork) {
  insert(10'001, "gone");
  leaving_ = {"gone"};
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 1U);
  EXPECT_THAT(forgotten_, IsEmpty());
  remover_.step();
  EXPECT_EQ(jobsOf("gone"), 0U);
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
}

TEST_F(EndpointRemoverTest, AFailingStorageForgetsNothing) {
  insert(3, "gone");
  leaving_ = {"gone"};
  storage_.faults.failNext("jobs.remove");
  EXPECT_THROW(remover_.step(), StorageError);
  EXPECT_THAT(forgotten_, IsEmpty());
  remover_.step();
  EXPECT_THAT(forgotten_, ElementsAre("gone"));
}

class OutboxCleanerTest : public testing::Test {
 protected:
  void owe(int count, const EndpointId& endpoint = "ep") {
    for (int i = 0; i < count; ++i) {
      JobSpec job;
      job.id = endpoint + "-" + std::to_string(++made_);
      job.endpoint = endpoint;
      job.input = "{}";
      job.webhook = "http://example.com/";
      const JobKey key{endpoint, job.id};
      (void)storage_.real->jobs().insert(std::move(job), storage_.policy);
      (void)storage_.real->jobs().cancel(key);
    }
  }
  std::uint64_t owedBy(const EndpointId& endpoint = "ep") { return storage_.real->outbox().owed(endpoint).count; }

  test::UnitStorage storage_;
  int made_ = 0;
  const OwedBounds bounds_{Millis(86'400'000), 10};
  OutboxCleaner cleaner_{storage_->outbox(), bounds_, storage_.clock, storage_.log};
};

TEST_F(OutboxCleanerTest, WithinTheBoundsNoLossIsReported) {
  owe(10);
  storage_.clock.advance(Millis(86'399'999));
  cleaner_.step();
  EXPECT_EQ(owedBy(), 10U);
  EXPECT_THAT(storage_.log.lines(), IsEmpty());
}

TEST_F(OutboxCleanerTest, GivesUpWebhooksBeyondABoundAndReportsOncePerEndpoint) {
  owe(700);
  owe(4, "old");
  owe(10, "other");
  storage_.clock.advance(Millis(1));
  owe(610);
  storage_.clock.advance(Millis(86'399'999));
  owe(9, "other");
  cleaner_.step();
  EXPECT_EQ(owedBy(), 10U);
  EXPECT_EQ(owedBy("old"), 0U);
  EXPECT_EQ(owedBy("other"), 9U);
  EXPECT_THAT(
      storage_.log.lines(),
      ElementsAre(HasSubstr("endpoint ep gave up 700 webhooks that were owed for webhook.maxAge, and 600 beyond"),
                  HasSubstr("endpoint old gave up 4"), HasSubstr("endpoint other gave up 10")));
  cleaner_.step();
  EXPECT_EQ(storage_.log.lines().size(), 3U);
}

TEST_F(OutboxCleanerTest, WebhooksAgedWithoutAServerHaveAnHour) {
  owe(3);
  storage_.clock.advance(Millis(90'000'000));  // the server was down
  OutboxCleaner started(storage_->outbox(), bounds_, storage_.clock, storage_.log);
  started.step();
  EXPECT_EQ(owedBy(), 3U);
  storage_.clock.advance(OutboxCleaner::kGrace);
  started.step();
  EXPECT_EQ(owedBy(), 0U);
}

TEST_F(OutboxCleanerTest, AStepIsABoundedPieceOfWork) {
  owe(10'011);
  cleaner_.step();
  EXPECT_EQ(owedBy(), 11U);
  cleaner_.step();
  EXPECT_EQ(owedBy(), 10U);
}

TEST_F(OutboxCleanerTest, AStoppedStepLeavesTheRest) {
  owe(11);
  cleaner_.stop();
  cleaner_.step();
  EXPECT_EQ(owedBy(), 11U);
}

TEST_F(OutboxCleanerTest, WorkBeforeAFailureIsReported) {
  owe(1'010);
  storage_.faults.failCall("outbox.abandonOwed", 2, fault::CallFault::before);
  EXPECT_THROW(cleaner_.step(), StorageError);
  EXPECT_EQ(owedBy(), 510U);
  EXPECT_THAT(storage_.log.lines(), ElementsAre(HasSubstr("and 500 beyond webhook.maxOwed")));
  cleaner_.step();
  EXPECT_EQ(owedBy(), 10U);
}

// A new life of the node stands for a dead process; tests/http/test_lifecycle.py kills a process.
class LostJobsTest : public testing::Test {
 protected:
  void runInAnEarlierLife(const JobId& id) {
    storage_.insert(id);
    claimInAnEarlierLife();
  }
  void claimInAnEarlierLife() {
    const ClaimWant want{"ep", {"w"}};
    (void)storage_.real->leases().claim({&want, 1}, storage_.life->holder(), 1).jobs;
  }
  /// Returns the lines about lost jobs at a start, or at the start of another node.
  std::vector<std::string> report(bool ofAnotherNode = false) {
    testkit::RecordingLog log;
    LostJobs lost(storage_.real->jobs(), log);
    lost.collect("ep");
    if (!ofAnotherNode) storage_.life->join();
    (void)storage_.real->leases().sweep(100);
    lost.report();
    return log.lines();
  }

  test::UnitStorage storage_;
};

TEST_F(LostJobsTest, EachLostJobIsNamedWithTheNumberOfLosses) {
  runInAnEarlierLife("a");
  EXPECT_THAT(report(), ElementsAre(testing::AllOf(HasSubstr("job.lost"), HasSubstr("a of ep was running"),
                                                   HasSubstr("waits again"), HasSubstr("lost 1 time so far"))));
  claimInAnEarlierLife();
  EXPECT_THAT(report(), ElementsAre(HasSubstr("lost 2 times so far")));
  claimInAnEarlierLife();
  EXPECT_THAT(report(), ElementsAre(testing::AllOf(HasSubstr("the job is FAILED"), HasSubstr("lost 3 times"))));
  EXPECT_THAT(report(), IsEmpty());
}

TEST_F(LostJobsTest, AJobOfALivingWorkerIsNotNamed) {
  runInAnEarlierLife("a");
  storage_.insert("waits");
  EXPECT_THAT(report(true), IsEmpty());
}

}  // namespace
}  // namespace jobq
