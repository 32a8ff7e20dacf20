// Tests of large bodies that are unreadable for a while: the machine lacks a resource, or the disk fails for some
// seconds.
#include <gmock/gmock.h>

#include <cerrno>

#include "sqlite_bodies_fixture.h"

namespace jobq::testkit {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class PassingFaults : public SqliteBodiesTest {
 protected:
  /// Claims the only job `times` times, and sweeps behind each pause.
  void claimInVain(int times) {
    for (int i = 0; i < times; ++i) {
      EXPECT_THAT(claim(1), IsEmpty());
      clock_.advance(Millis(1'000));
      (void)sweep();
    }
  }
};

TEST_F(PassingFaults, AJobWithATemporarilyUnreadableInputGoesBackToTheQueue) {
  open();
  submit(large("a"));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  EXPECT_THAT(claim(1), IsEmpty());
  clock_.advance(Millis(999));
  EXPECT_THAT(sweep().requeuedAt, IsEmpty()) << "a pause of a second";
  clock_.advance(Millis(1));
  EXPECT_EQ(sweep().requeuedAt, std::vector<EndpointId>{"ep"});
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  EXPECT_EQ(find("a")->losses, 0U);
  bodyFaults().reset();
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
}

TEST_F(PassingFaults, AJobWithAnUnreadableInputIsNotClaimedForEver) {
  open();
  submit(large("a"));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  claimInVain(19);
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  claimInVain(1);
  EXPECT_EQ(find("a")->state, JobState::failed);
}

TEST_F(PassingFaults, AFaultOfTheMachineCountsAgainstNoJob) {
  open();
  submit(large("a"));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN}) {
    bodyFaults().openError = error;
    claimInVain(25);
    EXPECT_EQ(find("a")->state, JobState::inQueue) << error;
  }
  EXPECT_THAT(log_.text(), HasSubstr("Too many open files"));
  bodyFaults().openError = EACCES;
  claimInVain(19);
  EXPECT_EQ(find("a")->state, JobState::inQueue) << "the reads of a machine without descriptors do not count";
  bodyFaults().reset();
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
  EXPECT_EQ(find("a")->losses, 0U);
}

TEST_F(PassingFaults, AnErrorOfTheDiskForSomeSecondsEndsNoJob) {
  open();
  submit(large("a"));
  bodyFaults().readAnswers = SQLITE_IOERR_READ;
  claimInVain(19);
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  bodyFaults().reset();
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
}

TEST_F(PassingFaults, AJobWithLittleTimeIsReturnedBeforeItsTimeIsOver) {
  open();
  JobSpec job = large("a");
  job.policy.executionTimeout = Millis(100);
  submit(std::move(job));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  EXPECT_THAT(claim(1), IsEmpty());
  clock_.advance(Millis(50));
  (void)sweep();
  EXPECT_EQ(find("a")->state, JobState::inQueue);
}

TEST_F(PassingFaults, AStopOfTheServerLosesNoLeftOutJob) {
  open();
  submit(large("a"));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  EXPECT_THAT(claim(1), IsEmpty());
  bodyFaults().reset();
  storage_.reset();
  open();
  (void)sweep();
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  EXPECT_EQ(find("a")->losses, 0U);
}

TEST_F(PassingFaults, AWebhookIsNotGivenUpByAnErrorOfTheDiskOrTheMachine) {
  open();
  JobSpec job = spec("a");
  job.webhook = "http://example.com/";
  submitAndEnd(std::move(job));
  bodyFaults().readAnswers = SQLITE_IOERR_READ;
  EXPECT_THAT(claimAllDue(storage_->outbox(), Millis(1'000)), IsEmpty());
  bodyFaults().readAnswers = SQLITE_OK;
  clock_.advance(Millis(60'000));
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  bodyFaults().openError = EMFILE;
  EXPECT_THAT(claimAllDue(storage_->outbox(), Millis(1'000)), IsEmpty());
  bodyFaults().reset();
  clock_.advance(Millis(1'000));
  const auto owed = claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_THAT(owed, SizeIs(1)) << "a pause of a second";
  EXPECT_EQ(owed[0].tries, 0U);
}

}  // namespace
}  // namespace jobq::testkit
