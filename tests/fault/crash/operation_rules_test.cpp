// The checker's rules of keys, purges, ttls, streams and webhooks: a clean history passes, and each rule can fail.
#include "call_file.h"
#include "history.h"
#include "rule_fixture.h"

namespace jobq::fault {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Purges and ttls

TEST_F(Rule, APurgeMayTakeAWaitingJob) {
  seen(JobState::inQueue, 5);
  missed(20);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
  ordered(Order::Command::purge, 10);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, APurgeWithoutAnAnswerMayHaveTakenTheJob) {
  ordered(Order::Command::purge, 10, Order::Effect::unknown);
  missed(120);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, ALaterPurgeExcusesNoLoss) {
  missed(20);
  ordered(Order::Command::purge, 30);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
}

TEST_F(Rule, APurgeTakesNoRunningJob) {
  ran(1, 5, 40);
  ordered(Order::Command::purge, 10);
  missed(50);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
}

TEST_F(Rule, APurgeTakesNoJobSeenToRunOrEnd) {
  seen(JobState::inProgress, 5);
  ordered(Order::Command::purge, 10);
  missed(50);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
  job_.sights[0].state = JobState::cancelled;
  ordered(Order::Command::cancel, 1);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
}

TEST_F(Rule, AJobPutBackInTheQueueByADeathMayBePurged) {
  cutOff(1, 5);
  ordered(Order::Command::purge, 110);
  missed(120);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, APurgedJobNeverRuns) {
  ordered(Order::Command::purge, 10);
  missed(20);
  cutOff(1, 30);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 1 began in life 0 after the job had been 404 in life 0")));
}

TEST_F(Rule, APurgedJobIsNotSeenAgain) {
  ordered(Order::Command::purge, 10);
  missed(20);
  seen(JobState::inQueue, 110);
  EXPECT_THAT(faults(), ElementsAre("it was seen IN_QUEUE in life 1 after it had been 404 in life 0"));
}

TEST_F(Rule, APurgeOutlivesTheServer) {
  ordered(Order::Command::purge, 10);
  cutOff(1, 110);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("although the line had been purged in life 0")));
  job_.sent = at(20);  // after the purge
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Rule, AShortTtlEndsAJobThenAndNotBefore) {
  ordered(Order::Command::ttl, 10, Order::Effect::done, 1'500);
  missed(1'511);
  EXPECT_THAT(faults(), IsEmpty());
  job_.absences[0].span = at(1'400);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it is lost")));
}

TEST_F(Rule, ReportsAJobBeyondTheTtl) {
  ordered(Order::Command::ttl, 10, Order::Effect::done, 1'500);
  seen(JobState::inQueue, 2'600);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("ms after its ttl had ended")));
  ordered(Order::Command::ttl, 1'000, Order::Effect::unknown, 1'500);
  EXPECT_THAT(faults(), IsEmpty()) << "the second ttl may have been set";
}

// Streams

class Streams : public Rule {
 protected:
  Streams() {
    job_.plan.chunks = 3;
    ran(1, 10, 40);
  }
  Page& page(Nanos ms, JobState state, std::vector<std::uint32_t> places, std::uint32_t attempt = 1) {
    Page page{at(ms), life(ms), true, true, attempt, state, {}};
    for (const std::uint32_t place : places) page.pieces.push_back({7, attempt, place});
    return job_.pages.emplace_back(page);
  }
  Page& all(Nanos ms, JobState state, std::vector<std::uint32_t> places, std::uint32_t attempt = 1) {
    Page& last = page(ms, state, std::move(places), attempt);
    last.consumes = false;
    return last;
  }
  void lost(Nanos ms) { page(ms, JobState::inQueue, {}).read = false; }
};

TEST_F(Streams, ACleanStreamPasses) {
  page(5, JobState::inQueue, {}, 0);
  page(20, JobState::inProgress, {0, 1});
  page(42, JobState::completed, {2});
  all(45, JobState::completed, {0, 1, 2});
  page(150, JobState::completed, {});
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Streams, AnotherAttemptBeginsAnew) {
  job_.runs.clear();
  cutOff(1, 10);
  ran(3, 110, 140);
  page(20, JobState::inProgress, {0, 1});
  page(120, JobState::inProgress, {0}, 3);
  page(142, JobState::completed, {1, 2}, 3);
  EXPECT_THAT(faults(), IsEmpty());
  page(150, JobState::completed, {}, 1);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("told of attempt 1, COMPLETED, after attempt 3")));
}

TEST_F(Streams, NoChunkComesTwice) {
  page(20, JobState::inProgress, {0, 1});
  page(30, JobState::inProgress, {1});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("handed out chunk 1 again")));
}

TEST_F(Streams, ASkippedChunkIsAViolation) {
  page(20, JobState::inProgress, {0});
  page(30, JobState::inProgress, {2});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("skipped chunk 1")));
}

TEST_F(Streams, ALostAnswerMayHaveHadSome) {
  page(20, JobState::inProgress, {0});
  lost(30);
  page(42, JobState::completed, {2});
  EXPECT_THAT(faults(), IsEmpty());
  job_.pages[2].pieces.clear();
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(Streams, TheEndComesWithTheLastChunks) {
  page(42, JobState::completed, {0, 1});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("with 2 of 3 chunks handed out")));
}

TEST_F(Streams, ReportsForeignChunks) {
  page(20, JobState::inProgress, {0}).pieces[0].number = 8;
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("with a chunk of number 8")));
  job_.pages[0].pieces[0] = {7, 3, 0};
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("with a chunk of attempt 3")));
}

TEST_F(Streams, AfterTheEndAllAreThere) {
  all(45, JobState::completed, {0, 1});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("with 2 chunks of 3")));
  job_.pages.clear();
  all(45, JobState::completed, {0, 2, 1});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("chunk 2 at place 1"), HasSubstr("chunk 1 at place 2")));
}

TEST_F(Streams, AreOfTheEndedAttempt) {
  all(45, JobState::completed, {0, 1, 2}, 3);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("attempt 3, COMPLETED, which has returned no output")));
}

// Keys

class Keys : public testing::Test {
 protected:
  Keys() {
    history_.lifeBegins(100);
    plan_.keyed = true;
  }
  void send(Nanos ms, const std::string& id) { history_.sent(plan_, at(ms), id); }
  void run(const std::string& id) {
    history_.noted({true, Run::End::none, 7, id, 1, 100, 10 * kMs});
    history_.noted({false, Run::End::output, 7, id, 1, 100, 15 * kMs});
  }
  void see(Nanos ms) { history_.saw(7, {at(ms), history_.life(), JobState::completed, true, 0, outputOf(7), ""}); }
  std::vector<std::string> lifeEnds() {
    std::vector<std::string> sentences;
    for (const Violation& violation : history_.lifeEnds()) sentences.push_back(violation.sentence);
    history_.lifeBegins(100);
    return sentences;
  }

  Plan plan_{7, "ep", 0, 0, false};
  History history_{kRules};
};

TEST_F(Keys, ASubmissionWithoutAnAnswerIsSentAgain) {
  send(0, "");
  run("j");
  see(20);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  see(120);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  ASSERT_EQ(history_.unanswered().size(), 1U) << "the end was seen in two lives, and the key still needs an answer";
  send(220, "j");
  see(230);
  EXPECT_THAT(lifeEnds(), IsEmpty());
  EXPECT_THAT(history_.unanswered(), IsEmpty());
  EXPECT_THAT(history_.open(), IsEmpty());
  EXPECT_EQ(history_.totals().sentAgain, 1U);
  EXPECT_EQ(history_.totals().acknowledged, 1U);
}

TEST_F(Keys, OneKeyIsOneJob) {
  send(0, "");
  run("j");
  EXPECT_THAT(lifeEnds(), IsEmpty());
  send(120, "twin");
  EXPECT_THAT(lifeEnds(), ElementsAre(HasSubstr("its Idempotency-Key was answered with job twin too")));
}

TEST_F(Keys, AllAnswersNameOneJob) {
  send(0, "j");
  send(10, "twin");
  EXPECT_THAT(lifeEnds(), ElementsAre(HasSubstr("its Idempotency-Key was answered with job twin too")));
}

// Webhooks

class WebhookRule : public Rule {
 protected:
  WebhookRule() { ran(1, 10, 15); }
  void close(bool ended = true) { webhooks_.closed(job_, ended ? &job_.sights.back() : nullptr); }
  void call(std::uint32_t attempt, const std::string& status = "COMPLETED", const std::string& error = "") {
    webhooks_.called({"j." + std::to_string(attempt), "j", status, status == "COMPLETED" ? outputOf(7) : "", error});
  }

  WebhookCalls webhooks_;
};

TEST_F(WebhookRule, AnEndIsToldOf) {
  seen(JobState::completed, 20);
  close();
  EXPECT_THAT(webhooks_.missing(), ElementsAre("j"));
  call(1);
  call(1);
  EXPECT_THAT(webhooks_.missing(), IsEmpty());
  EXPECT_THAT(webhooks_.faults(), IsEmpty());
  EXPECT_EQ(webhooks_.repeated(), 1U);
}

TEST_F(WebhookRule, AWebhookWithAWrongEndDoesNotCount) {
  seen(JobState::completed, 20);
  close();
  call(1, "FAILED", "why");
  EXPECT_THAT(webhooks_.missing(), ElementsAre("j"));
}

TEST_F(WebhookRule, AWebhookWithAWrongOutputDoesNotCount) {
  seen(JobState::completed, 20).output = "{}";
  close();
  call(1);
  EXPECT_THAT(webhooks_.missing(), ElementsAre("j"));
}

TEST_F(WebhookRule, TheSameEndHasTheSameId) {
  seen(JobState::completed, 20);
  close();
  call(1);
  call(3);
  EXPECT_THAT(webhooks_.faults(),
              ElementsAre(HasSubstr("ended at most 1 times"), HasSubstr("j.3 said COMPLETED, but")));
}

TEST_F(WebhookRule, ARetriedEndIsToldOfTwice) {
  job_.runs[0].end = Run::End::failed;
  ran(3, 25, 30);
  ordered(Order::Command::retry, 20);
  seen(JobState::completed, 40);
  close();
  call(3);
  call(1, "FAILED", "number 7 was told to fail");
  EXPECT_THAT(webhooks_.faults(), IsEmpty());
  call(5, "FAILED", "number 7 was told to fail");
  EXPECT_THAT(webhooks_.faults(),
              ElementsAre(HasSubstr("at most 2 times"), HasSubstr("j.5 said FAILED, after the job's")));
}

TEST_F(WebhookRule, TheSameIdSaysTheSame) {
  seen(JobState::completed, 20);
  close();
  call(1);
  call(1, "FAILED", "why");
  EXPECT_THAT(webhooks_.faults(), ElementsAre(HasSubstr("webhook j.1 said COMPLETED and later FAILED")));
}

TEST_F(WebhookRule, ReportsAWebhookOfAPurgedJob) {
  job_.runs.clear();
  ordered(Order::Command::purge, 10);
  missed(20);
  close(false);
  EXPECT_THAT(webhooks_.missing(), IsEmpty());
  EXPECT_THAT(webhooks_.faults(), IsEmpty());
  call(1, "CANCELLED");
  EXPECT_THAT(webhooks_.faults(), ElementsAre(HasSubstr("ended at most 0 times")));
}

TEST_F(WebhookRule, ReportsAnUnknownJob) {
  call(1);
  EXPECT_THAT(webhooks_.faults(), ElementsAre(HasSubstr("j.1 said COMPLETED of an unknown job")));
}

TEST_F(WebhookRule, AnIdIsTheJobsOwn) {
  webhooks_.called({"other.1", "j", "COMPLETED", "", ""});
  EXPECT_THAT(webhooks_.faults(), ElementsAre("a webhook with the id other.1 tells of job j"));
}

TEST(CallFile, ALineIsACall) {
  const auto call = callIn(
      R"({"url":"file:///post","headers":{"webhook-id":"j.1"},"body":{"id":"j","status":"FAILED","output":{"a":1},)"
      R"("error":"no"}})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id, "j.1");
  EXPECT_EQ(call->job, "j");
  EXPECT_EQ(call->status, "FAILED");
  EXPECT_EQ(call->output, R"({"a":1})");
  EXPECT_EQ(call->error, "no");
  EXPECT_FALSE(callIn(R"({"url":"file:///post","hea)"));
}

}  // namespace
}  // namespace jobq::fault
