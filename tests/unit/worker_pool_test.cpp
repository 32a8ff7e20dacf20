// The workers of one endpoint on their way to a new release (core/workers/worker_pool.h), without threads and clocks.
#include "core/workers/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CrewTest : public testing::Test {
 protected:
  static EndpointPtr endpoint(ReleasePtr release, std::uint32_t max = 3) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->id = "ep";
    endpoint->release = std::move(release);
    endpoint->workersMax = endpoint->maxStuck = max;
    return endpoint;
  }

  void hire(const WorkerId& id, bool replaces = false) {
    Member member{Duty::starting, now_, now_, crew_.target()};
    member.replaces = replaces;
    crew_.members[id] = member;
  }
  bool ready(const WorkerId& id) { return crew_.takeReady(id, now_); }
  void join(const WorkerId& id) {
    hire(id);
    EXPECT_TRUE(ready(id));
  }
  void busy(const WorkerId& id) {
    crew_.members.at(id).duty = Duty::busy;
    crew_.members.at(id).lease = {id + "'s job", 1};
  }
  void gone(const WorkerId& id, const std::string& failure = "") { crew_.takeGone(id, failure, now_); }
  std::size_t outdated() const {
    std::size_t old = 0;
    for (const auto& [id, member] : crew_.members) old += member.release != crew_.endpoint->release ? 1 : 0;
    return old;
  }

  const ReleasePtr first_ = std::make_shared<Release>();
  const ReleasePtr second_ = std::make_shared<Release>();
  const ReleasePtr third_ = std::make_shared<Release>();
  Instant now_{};
  Crew crew_{endpoint(first_)};
};

TEST_F(CrewTest, NothingHappensWithoutARelease) {
  join("a");
  busy("a");
  join("b");
  const Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, IsEmpty());
  EXPECT_FALSE(step.hire);
  EXPECT_FALSE(crew_.isRolling());
}

TEST_F(CrewTest, TheFirstOfAReleaseComesBeforeAnybodyGoesIfThereIsRoom) {
  join("a");
  join("b");
  crew_.change(endpoint(second_));
  EXPECT_TRUE(crew_.isRolling());
  Crew::Step step = crew_.nextStep();
  EXPECT_TRUE(step.hire);
  EXPECT_FALSE(step.replaces);
  EXPECT_THAT(step.dismissed, IsEmpty());
  hire("c");
  step = crew_.nextStep();
  EXPECT_FALSE(step.hire) << "one after the other";
  EXPECT_THAT(step.dismissed, IsEmpty());
  EXPECT_TRUE(ready("c"));
  EXPECT_THAT(crew_.nextStep().dismissed, ElementsAre("a"));
}

TEST_F(CrewTest, AFullCrewGivesUpOneAtATime) {
  for (const char* id : {"a", "b", "c"}) join(id);
  crew_.change(endpoint(second_));
  Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, ElementsAre("a"));
  EXPECT_TRUE(step.hire && step.replaces);
  hire("d", true);
  EXPECT_THAT(crew_.nextStep().dismissed, IsEmpty()) << "until its replacement is at work";
  EXPECT_TRUE(ready("d"));
  EXPECT_THAT(crew_.nextStep().dismissed, ElementsAre("b"));
}

TEST_F(CrewTest, WhoIsBusyLeavesAfterItsJob) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  crew_.change(endpoint(second_));
  Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, IsEmpty());
  EXPECT_THAT(step.stopped, IsEmpty()) << "a release stops no job";
  EXPECT_TRUE(crew_.members.at("a").lastJob);
  (void)crew_.nextStep();
  EXPECT_FALSE(crew_.members.at("b").lastJob) << "one below the running count at most";
  EXPECT_TRUE(ready("b")) << "who is not asked to leave goes on";
  EXPECT_FALSE(ready("a"));
  step = crew_.nextStep();
  EXPECT_TRUE(step.hire && step.replaces);
}

TEST_F(CrewTest, EverybodyHasTheReleaseInTheEnd) {
  for (const char* id : {"a", "b", "c"}) join(id);
  busy("b");
  crew_.change(endpoint(second_));
  int hired = 0;
  for (int i = 0; crew_.isRolling() && i < 50; ++i) {
    const Crew::Step step = crew_.nextStep();
    for (const WorkerId& id : step.dismissed) gone(id);
    if (step.hire) {
      const WorkerId id = "n" + std::to_string(++hired);
      hire(id, step.replaces);
      EXPECT_TRUE(ready(id));
    }
    EXPECT_GE(crew_.slots(), 2U);
    EXPECT_LE(crew_.slots(), 3U);
    if (crew_.members.contains("b") && crew_.members.at("b").lastJob) {
      EXPECT_FALSE(ready("b"));
      gone("b");
    }
  }
  EXPECT_EQ(outdated(), 0U);
  EXPECT_EQ(crew_.slots(), 3U);
}

TEST_F(CrewTest, AReleaseThatDoesNotStartHalts) {
  join("a");
  crew_.change(endpoint(second_));
  EXPECT_TRUE(crew_.nextStep().hire);
  hire("b");
  gone("b", "no such thing");
  EXPECT_TRUE(crew_.halted);
  EXPECT_EQ(crew_.fault, "no such thing");
  EXPECT_FALSE(crew_.isRolling());
  EXPECT_EQ(crew_.target(), first_) << "the old workers keep serving, and new ones run what they run";
  EXPECT_EQ(crew_.startAfter, Instant{}) << "nobody has to wait for the old one";
}

TEST_F(CrewTest, TheSlotThatAHaltedReleaseEmptiedIsFilledAgain) {
  crew_ = Crew{endpoint(first_, 1)};
  join("a");
  crew_.change(endpoint(second_, 1));
  const Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, ElementsAre("a"));
  gone("a");
  hire("b", step.replaces);
  gone("b", "broken");
  EXPECT_TRUE(crew_.halted);
  const Crew::Step again = crew_.nextStep();
  EXPECT_TRUE(again.hire);
  EXPECT_EQ(crew_.target(), first_);
}

TEST_F(CrewTest, TheNextReleaseEndsTheHalt) {
  join("a");
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  hire("b");
  gone("b", "broken");
  crew_.change(endpoint(third_));
  EXPECT_FALSE(crew_.halted);
  EXPECT_EQ(crew_.fault, "");
  EXPECT_EQ(crew_.target(), third_);
  EXPECT_TRUE(crew_.isRolling());
}

TEST_F(CrewTest, AChangeOfTheRulesIsNoRelease) {
  join("a");
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  hire("b");
  gone("b", "broken");
  crew_.change(endpoint(second_, 7));
  EXPECT_TRUE(crew_.halted) << "the same release does not start either";
}

TEST_F(CrewTest, TheFirstReleaseEverIsTriedAgainAfterAWhile) {
  hire("a");
  gone("a", "not yet");
  EXPECT_FALSE(crew_.halted);
  EXPECT_EQ(crew_.startAfter, now_ + Millis(1'000));
  hire("b");
  gone("b", "not yet");
  EXPECT_EQ(crew_.startAfter, now_ + Millis(2'000));
  join("c");
  EXPECT_EQ(crew_.backoff, Millis(0));
  EXPECT_EQ(crew_.fault, "");
}

TEST_F(CrewTest, TwoReleasesInARowLeadToTheLast) {
  for (const char* id : {"a", "b"}) join(id);
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  hire("c");
  crew_.change(endpoint(third_));
  EXPECT_TRUE(ready("c"));
  int hired = 0;
  for (int i = 0; crew_.isRolling() && i < 50; ++i) {
    const Crew::Step step = crew_.nextStep();
    for (const WorkerId& id : step.dismissed) gone(id);
    if (!step.hire) continue;
    const WorkerId id = "n" + std::to_string(++hired);
    hire(id, step.replaces);
    EXPECT_TRUE(ready(id));
  }
  EXPECT_EQ(outdated(), 0U);
}

TEST_F(CrewTest, AReleaseLeavesAsManyAsItFound) {
  join("a");
  for (const ReleasePtr& release : {second_, third_}) {
    crew_.change(endpoint(release));
    int hired = 0;
    for (int i = 0; crew_.isRolling() && i < 50; ++i) {
      const Crew::Step step = crew_.nextStep();
      for (const WorkerId& id : step.dismissed) gone(id);
      if (!step.hire) continue;
      const WorkerId id = (release == second_ ? "s" : "t") + std::to_string(++hired);
      hire(id, step.replaces);
      crew_.members.at(id).spare = step.spare;
      EXPECT_TRUE(ready(id));
    }
    EXPECT_EQ(outdated(), 0U);
    EXPECT_EQ(crew_.slots(), 1U);
  }
}

TEST_F(CrewTest, WhoIsOverALoweredMaximumLeavesWhenItIsFree) {
  join("a");
  join("b");
  busy("a");
  busy("b");
  auto less = std::make_shared<Endpoint>(*crew_.endpoint);
  less->workersMax = 1;
  crew_.change(less);
  EXPECT_FALSE(ready("a"));
  EXPECT_TRUE(ready("b"));
  EXPECT_EQ(crew_.vacancies, 0U);
}

TEST_F(CrewTest, AStuckHandlerStopsNoRelease) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  ASSERT_TRUE(crew_.members.at("a").lastJob);
  crew_.members.at("a").duty = Duty::stuck;
  const Crew::Step step = crew_.nextStep();
  EXPECT_TRUE(step.hire || crew_.members.at("b").lastJob) << "somebody else's turn";
}

TEST_F(CrewTest, AnEndpointThatNothingHereCanRunLosesItsWorkersAfterTheirJobs) {
  join("a");
  join("b");
  busy("b");
  crew_.change(endpoint(nullptr));
  const Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, ElementsAre("a"));
  EXPECT_THAT(step.stopped, IsEmpty());
  EXPECT_FALSE(ready("b"));
  EXPECT_EQ(crew_.vacancies, 0U);
}

TEST_F(CrewTest, AnEndpointThatIsGoneStopsItsJobs) {
  join("a");
  join("b");
  busy("b");
  crew_.retiring = true;
  const Crew::Step step = crew_.nextStep();
  EXPECT_THAT(step.dismissed, ElementsAre("a"));
  EXPECT_THAT(step.stopped, ElementsAre(LeaseRef{"b's job", 1}));
  EXPECT_FALSE(ready("b"));
}

TEST_F(CrewTest, WhoWasStuckAndComesBackLeavesWhenItsSlotIsTaken) {
  crew_ = Crew{endpoint(first_, 1)};
  join("a");
  crew_.members.at("a").duty = Duty::stuck;
  join("b");
  EXPECT_EQ(crew_.slots(), 1U);
  EXPECT_FALSE(ready("a"));
}

}  // namespace
}  // namespace jobq
