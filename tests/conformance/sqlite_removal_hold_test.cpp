// Tests of a start under a clock that may be far ahead: expired jobs are absent, and stay in the file for an hour.
#include <gmock/gmock.h>

#include <chrono>

#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

class RemovalHolds : public SqliteTest {
 protected:
  /// Closes the storage, which holds a job with a lifetime of a day, and moves the clock by 30 days.
  void pause() {
    open();
    submit("job");
    storage_.reset();
    clock_.advance(hours(720));
  }
  void reopen() {
    storage_.reset();
    open();
  }
  std::size_t removed() { return storage_->leases().sweep(100).removed; }
  /// Returns whether a server with the right clock finds the job.
  bool isKept() {
    storage_.reset();
    ManualClock rightClock;
    const MapConfig config;
    const auto storage = loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so", "sqlite",
                                             PluginEnv{config, rightClock, log_, dir_, false});
    return storage->jobs().find({"ep", "job"}).has_value();
  }
};

TEST_F(RemovalHolds, AnUnconfirmedClockRemovesNoJobForAnHour) {
  pause();
  clock_.setLead(std::nullopt);
  reopen();
  EXPECT_THAT(log_.lines(),
              testing::Contains(testing::AllOf(testing::HasSubstr("720 h old"), testing::HasSubstr("for 60 minutes"))));
  EXPECT_FALSE(find("job"));
  EXPECT_THAT(claim(1), testing::IsEmpty());
  clock_.advance(minutes(59));
  EXPECT_EQ(removed(), 0U);
  EXPECT_TRUE(isKept());
  open();
  EXPECT_EQ(removed(), 0U) << "a restart continues the hold";
  clock_.advance(minutes(1));
  EXPECT_EQ(removed(), 1U);
}

TEST_F(RemovalHolds, APauseIsHeldOnce) {
  pause();
  clock_.setLead(std::nullopt);
  reopen();
  clock_.advance(hours(1));
  reopen();
  EXPECT_EQ(removed(), 1U);
  submit("job");
  storage_.reset();
  clock_.advance(hours(720));
  open();
  EXPECT_EQ(removed(), 0U) << "a second pause begins";
}

TEST_F(RemovalHolds, AConfirmedClockRemovesAtOnce) {
  pause();
  open();
  EXPECT_EQ(removed(), 1U);
}

TEST_F(RemovalHolds, ASmallGapRemovesAtOnce) {
  clock_.setLead(std::nullopt);
  open();
  JobSpec brief = spec("brief");
  brief.policy.ttl = minutes(20);
  submit(std::move(brief));
  storage_.reset();
  clock_.advance(hours(1));
  open();
  EXPECT_EQ(removed(), 1U);
}

TEST_F(RemovalHolds, AServiceConfirmingTheTimeEndsTheHold) {
  pause();
  clock_.setLead(std::nullopt);
  reopen();
  clock_.setLead(hours(700));
  clock_.advance(hours(2));
  EXPECT_EQ(removed(), 0U) << "the service has set the time back, and the process is ahead until a restart";
  clock_.setLead(Millis(-5));
  EXPECT_EQ(removed(), 1U);
}

}  // namespace
}  // namespace jobq::testkit
