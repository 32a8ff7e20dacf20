// The checker of the crash proof: a clean history passes, and each rule can fail.
#include "history.h"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "journal_line.h"
#include "rule_fixture.h"

namespace jobq::fault {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Rule, AnUnfinishedJobDoesNotExpire) {
  job_.plan.sync = true;
  job_.absences.push_back({at(61'000), 0});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
  ran(1, 10, 20);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, ACleanHistoryPasses) {
  seen(JobState::inQueue, 1);
  seen(JobState::inProgress, 12);
  cutOff(1, 10);
  ran(3, 110, 115);
  seen(JobState::inQueue, 105, 1);
  seen(JobState::inProgress, 112, 1);
  seen(JobState::completed, 120, 1);
  seen(JobState::completed, 220, 1);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, AFailureMayBeRetried) {
  job_.plan.failBelow = 2;
  ran(1, 1, 2, Run::End::failed);
  seen(JobState::failed, 3).error = "number 7 was told to fail";
  ordered(Order::Command::retry, 4, Order::Effect::unknown);
  ran(3, 5, 6);
  seen(JobState::completed, 7, 1);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, NoAttemptBeginsTwice) {
  cutOff(1, 10);
  ran(1, 110, 115);
  EXPECT_THAT(faults(), ElementsAre("attempt 1 began in life 1 although attempt 1 had begun in life 0"));
}

TEST_F(Rule, AttemptsGrow) {
  cutOff(3, 10);
  ran(1, 110, 115);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 1 began in life 1 although attempt 3")));
}

TEST_F(Rule, AJobRunsOnceInALife) {
  ran(1, 10, 15);
  ran(3, 20, 25);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("no call of /retry asked for it")));
}

TEST_F(Rule, TwoRunsAtATimeAreWrongEvenWithARetry) {
  ran(1, 10, 25);
  ordered(Order::Command::retry, 12);
  ran(3, 20, 30);
  EXPECT_THAT(faults(), ElementsAre("attempt 3 began while attempt 1 still ran in life 0"));
}

TEST_F(Rule, ReportsARunAfterTheEnd) {
  ran(1, 10, 15);
  seen(JobState::completed, 20);
  cutOff(3, 110);
  ordered(Order::Command::retry, 30);  // without effect on a completed job
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 3 began in life 1 after the job had been seen COMPLETED")));
}

TEST_F(Rule, ReportsARunAfterACancel) {
  ordered(Order::Command::cancel, 5);
  seen(JobState::cancelled, 5).whole = false;
  ran(1, 10, 15);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 1 began in life 0 after the job had been seen CANCELLED")));
}

TEST_F(Rule, AClaimUnderwayBeginsAfterACancelAndEndsWithTheStop) {
  ordered(Order::Command::cancel, 5);
  seen(JobState::cancelled, 5).whole = false;
  ran(1, 10, 15);
  job_.runs.back().end = Run::End::stopped;
  EXPECT_THAT(faults(), IsEmpty());
  job_.runs.back().end = Run::End::output;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 1 began in life 0 after the job had been seen CANCELLED")));
}

TEST_F(Rule, ARefusedRetryExcusesNoRun) {
  job_.plan.failBelow = 2;
  ran(1, 1, 2, Run::End::failed);
  seen(JobState::failed, 3).error = "number 7 was told to fail";
  ordered(Order::Command::retry, 4, Order::Effect::refused);
  cutOff(3, 105);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("after the job had been seen FAILED")));
}

TEST_F(Rule, AnEndStays) {
  ran(1, 10, 15);
  seen(JobState::completed, 20);
  seen(JobState::inQueue, 120);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("seen COMPLETED with 0 retries in life 0 and later IN_QUEUE")));
}

TEST_F(Rule, TheOutputOfAnEndStaysToo) {
  job_.plan.failBelow = 2;
  ran(1, 10, 15, Run::End::failed);
  seen(JobState::failed, 20).error = "number 7 was told to fail";
  seen(JobState::failed, 120, 1).error = "number 7 was told to fail";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("with another output, error or number of retries")));
}

TEST_F(Rule, TwoEndsAtTheSameTimeAreReported) {
  ran(1, 10, 15);
  ordered(Order::Command::cancel, 20);
  seen(JobState::completed, 20);
  seen(JobState::cancelled, 20).whole = false;
  EXPECT_THAT(faults(), testing::Contains(HasSubstr("at the same time")));
}

TEST_F(Rule, ReportsAReturnToTheQueueWithoutADeath) {
  seen(JobState::inProgress, 10);
  seen(JobState::inQueue, 20);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("although no server died")));
}

TEST_F(Rule, ADeathIsCounted) {
  seen(JobState::inProgress, 10);
  seen(JobState::inQueue, 110);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("the death of its worker was not counted")));
}

TEST_F(Rule, ADeathIsCountedIfTheJobRunsAgainToo) {
  seen(JobState::inProgress, 10);
  seen(JobState::inProgress, 110);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("the death of its worker was not counted")));
}

TEST_F(Rule, RetriesDoNotShrink) {
  seen(JobState::inQueue, 110, 1);
  seen(JobState::inQueue, 210, 0);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its retries went back")));
}

TEST_F(Rule, NoRetryWithoutADeathOrACall) {
  seen(JobState::inQueue, 110, 2);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("after only 1 deaths and 0 calls of /retry")));
}

TEST_F(Rule, EachFurtherRunIsARetry) {
  cutOff(1, 10);
  ran(3, 110, 115);
  seen(JobState::completed, 120, 0);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("although 2 runs had begun")));
}

TEST_F(Rule, ACompletionNeedsAReturnedRun) {
  cutOff(1, 10);
  seen(JobState::completed, 20);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("no run of it had returned an output")));
}

TEST_F(Rule, AnotherJobsOutputIsNoticed) {
  ran(1, 10, 15);
  seen(JobState::completed, 20).output = "{\"echo\":8,\"square\":64}";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its output is {\"echo\":8")));
}

TEST_F(Rule, AMissingOutputIsNoticed) {
  ran(1, 10, 15);
  seen(JobState::completed, 20).output = "";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("its output is missing")));
}

TEST_F(Rule, AFailureNeedsAFailedRun) {
  ran(1, 10, 15);
  seen(JobState::failed, 20).error = "number 7 was told to fail";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("no run of it had failed")));
}

TEST_F(Rule, AnotherJobsErrorIsNoticed) {
  ran(1, 10, 15, Run::End::failed);
  seen(JobState::failed, 20).error = "number 8 was told to fail";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("which is not its own")));
}

TEST_F(Rule, LossesAreALegalEnd) {
  cutOff(1, 10);
  cutOff(3, 110);
  seen(JobState::failed, 210, 2).error = "its worker was lost 2 times, maxAttempts is 2";
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, LossesNeedDeaths) {
  cutOff(1, 10);
  ordered(Order::Command::retry, 105);  // explains the number of retries, but no loss
  seen(JobState::failed, 110, 2).error = "its worker was lost 2 times, maxAttempts is 2";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("after only 1 deaths")));
}

TEST_F(Rule, LossesEndAJobAtTheLimitOnly) {
  cutOff(1, 10);
  seen(JobState::failed, 110, 1).error = "its worker was lost 1 time, maxAttempts is 1";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("not its endpoint's maxAttempts")));
}

TEST_F(Rule, NoLossGoesUncounted) {
  for (const int life : {0, 1, 2}) cutOff(static_cast<std::uint32_t>(2 * life + 1), 100 * life + 10);
  seen(JobState::failed, 310, 2).error = "its worker was lost 2 times, maxAttempts is 2";
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("3 runs of it were cut off")));
}

TEST_F(Rule, ReportsACancelWithoutACall) {
  seen(JobState::cancelled, 10);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("no call of /cancel was sent")));
}

TEST_F(Rule, ReportsATimeout) {
  seen(JobState::timedOut, 10);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("TIMED_OUT")));
}

TEST_F(Rule, AnAcknowledgedJobIsNotLost) {
  job_.absences.push_back({at(1'799'000), 3});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost: 404 in life 3, 1799000 ms after")));
}

TEST_F(Rule, ResultsMayExpire) {
  job_.plan.sync = true;
  job_.absences.push_back({at(60'001), 3});
  EXPECT_THAT(faults(), IsEmpty());
}

/// The whole checker, over several lives.
class Lives : public testing::Test {
 protected:
  Lives() { history_.lifeBegins(kProcess); }

  void submit(const std::string& id) { history_.sent({7, "ep", 0, 0, false}, at(0), id); }
  void note(bool begins, std::uint32_t attempt, Nanos ms, const std::string& id = "j", int process = kProcess) {
    history_.noted({begins, begins ? Run::End::none : Run::End::output, 7, id, attempt, process, ms * kMs});
  }
  void runOnce() {
    note(true, 1, 10);
    note(false, 1, 15);
  }
  void see(Nanos ms) { history_.saw(7, {at(ms), history_.life(), JobState::completed, true, 0, outputOf(7), ""}); }
  std::vector<std::string> lifeEnds() {
    std::vector<std::string> sentences;
    for (const Violation& violation : history_.lifeEnds()) sentences.push_back(violation.sentence);
    history_.lifeBegins(kProcess);
    return sentences;
  }

  static constexpr int kProcess = 100;
  History history_{kRules};
};

TEST_F(Lives, AJobIsForgottenWhenTheEndWasSeenInTwoLives) {
  submit("j");
  runOnce();
  see(20);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  EXPECT_EQ(history_.open().size(), 1U);
  see(120);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  EXPECT_THAT(history_.open(), IsEmpty());
  EXPECT_EQ(history_.totals().checked, 1U);
  EXPECT_EQ(history_.totals().completed, 1U);
}

TEST_F(Lives, AJobWithOnlyTheStateSeenIsAskedAboutAgain) {
  submit("j");
  runOnce();
  for (const Nanos moment : {20, 120}) {  // like answers of /stream
    history_.saw(7, {at(moment), history_.life(), JobState::completed, false, 0, "", ""});
    EXPECT_THAT(lifeEnds(), IsEmpty());
    EXPECT_EQ(history_.open().size(), 1U);
  }
  see(220);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  EXPECT_THAT(history_.open(), IsEmpty());
}

TEST_F(Lives, ANewRunOfAForgottenJobIsNoticed) {
  submit("j");
  runOnce();
  see(20);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  see(120);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  note(true, 3, 210);
  EXPECT_THAT(lifeEnds(), ElementsAre(HasSubstr("attempt 3 began in life 2, long after it had been seen COMPLETED")));
}

TEST_F(Lives, AJobWithoutAnAnswerIsAskedAboutAfterTheRun) {
  submit("");
  EXPECT_THAT(lifeEnds(), IsEmpty());
  EXPECT_THAT(history_.open(), IsEmpty());
  runOnce();
  EXPECT_THAT(lifeEnds(), IsEmpty());
  ASSERT_EQ(history_.open().size(), 1U);
  EXPECT_EQ(history_.open()[0]->id, "j");
  EXPECT_EQ(history_.totals().unknownFound, 1U);
}

TEST_F(Lives, OneSubmissionIsOneJob) {
  submit("j");
  runOnce();
  note(true, 1, 20, "twin");
  EXPECT_THAT(lifeEnds(), testing::Contains(HasSubstr("job twin (number 7): the same submission runs as job j too")));
}

TEST_F(Lives, ReportsAnUnknownJob) {
  note(true, 1, 10);
  EXPECT_THAT(lifeEnds(), ElementsAre("job j (number 7): no submission was sent"));
}

TEST_F(Lives, ADeadServerDoesNotWork) {
  submit("j");
  note(true, 1, 10, "j", 99);
  EXPECT_THAT(lifeEnds(), ElementsAre(HasSubstr("process 99 works in the life of 100")));
}

TEST_F(Lives, AnEndHasABeginning) {
  submit("j");
  note(false, 1, 10);
  EXPECT_THAT(lifeEnds(), ElementsAre(HasSubstr("attempt 1 ended without having begun")));
}

TEST_F(Lives, AnUnendingJobIsNamed) {
  submit("j");
  EXPECT_THAT(lifeEnds(), IsEmpty());
  const auto left = history_.unfinished();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].sentence, "job j (number 7, ep): it has not ended");
  EXPECT_THAT(left[0].evidence, HasSubstr("acknowledged"));
}

TEST_F(Lives, AViolationIsReportedOnceWithTheEvidence) {
  submit("j");
  see(20);
  const auto found = history_.lifeEnds();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].evidence, HasSubstr("seen COMPLETED"));
  EXPECT_THAT(lifeEnds(), IsEmpty());
}

TEST(Journal, IsReadPieceByPieceAndRefusesInvalidLines) {
  std::string pattern = testing::TempDir() + "journal-XXXXXX";
  const int file = ::mkstemp(pattern.data());
  ASSERT_GE(file, 0);
  const auto write = [file](std::string line) {
    line.resize(kJournalLine - 1, ' ');
    line += '\n';
    ASSERT_EQ(::write(file, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  };
  JournalReader reader(pattern);
  EXPECT_THAT(reader.read(), IsEmpty());
  write("begin 7 j 3 100 12345");
  const auto lines = reader.read();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].begins);
  EXPECT_EQ(lines[0].number, 7U);
  EXPECT_EQ(lines[0].id, "j");
  EXPECT_EQ(lines[0].attempt, 3U);
  EXPECT_EQ(lines[0].process, 100);
  EXPECT_EQ(lines[0].at, 12345);
  write("output 7 j 3 100 12346");
  EXPECT_EQ(reader.read().at(0).end, Run::End::output);
  write("nonsense");
  EXPECT_THROW(reader.read(), std::runtime_error);
  ::close(file);
  std::filesystem::remove(pattern);
}

}  // namespace
}  // namespace jobq::fault
