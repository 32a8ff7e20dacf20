// Tests of the state machine of a worker (core/workers/pool/worker_state.h) and of the set with the states of all
// workers (core/workers/pool/worker_set.h), without threads and clocks.
#include "core/workers/pool/worker_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/workers/pool/worker_set.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::array kStates{WorkerState::starting, WorkerState::idle,  WorkerState::reserved,
                             WorkerState::busy,     WorkerState::stuck, WorkerState::leaving};
constexpr std::array kEvents{WorkerEvent::ready,   WorkerEvent::reserve,    WorkerEvent::assign,
                             WorkerEvent::release, WorkerEvent::stopWorker, WorkerEvent::stopGraceOver};

TEST(WorkerStateTest, EachStateAndEventHasTheStateOfTheDrawing) {
  constexpr auto no = std::nullopt;
  constexpr std::optional idle = WorkerState::idle;
  // One row for each state, one column for each event, in the order of kStates and kEvents.
  const std::optional<WorkerState> table[kStates.size()][kEvents.size()] = {
      {idle, no, no, no, no, no},                                     // starting
      {no, WorkerState::reserved, no, no, WorkerState::leaving, no},  // idle
      {no, no, WorkerState::busy, idle, no, no},                      // reserved
      {idle, no, no, no, no, WorkerState::stuck},                     // busy
      {idle, no, no, no, no, no},                                     // stuck
      {no, no, no, no, no, no},                                       // leaving
  };
  for (std::size_t state = 0; state < kStates.size(); ++state) {
    for (std::size_t event = 0; event < kEvents.size(); ++event) {
      EXPECT_EQ(next(kStates[state], kEvents[event]), table[state][event])
          << nameOf(kEvents[event]) << " in the state " << nameOf(kStates[state]);
    }
  }
}

TEST(WorkerStateTest, TheApiKnowsNoReservedAndNoBusyWorkers) {
  std::vector<std::string> names;
  for (const WorkerState state : kStates) names.emplace_back(apiNameOf(state));
  EXPECT_THAT(names, ElementsAre("starting", "idle", "idle", "running", "stuck", "leaving"));
}

class WorkerSetTest : public testing::Test {
 protected:
  static ClaimedJob jobFor(const WorkerId& worker) {
    ClaimedJob job;
    job.lease = {worker + "'s job", 1};
    job.worker = worker;
    job.startedAt = Instant{Millis(7)};
    job.policy.lowPriority = true;
    return job;
  }
  void addIdle(const WorkerId& worker) {
    set_.add(worker, {});
    EXPECT_TRUE(set_.makeIdle(worker, now_));
  }
  void addBusy(const WorkerId& worker) {
    addIdle(worker);
    EXPECT_THAT(set_.reserve(1), ElementsAre(worker));
    set_.assignJob(jobFor(worker));
  }
  const WorkerInfo& info(const WorkerId& worker) const { return set_.all().at(worker); }
  void TearDown() override {
    for (const WorkerState state : kStates) {
      const auto has = [state](const auto& entry) { return entry.second.state == state; };
      EXPECT_EQ(set_.count(state), static_cast<std::size_t>(std::ranges::count_if(set_.all(), has))) << nameOf(state);
    }
    std::map<ReleasePtr, std::size_t> staying;
    for (const auto& [id, info] : set_.all()) staying[info.release] += stays(info.state) ? 1 : 0;
    std::map<ReleasePtr, std::size_t> counted = set_.staying();
    for (auto* each : {&staying, &counted}) std::erase_if(*each, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(counted, staying);
  }

  const Instant now_{Millis(1'000)};
  WorkerSet set_;
};

TEST_F(WorkerSetTest, AReservationEndsWithOrWithoutAJob) {
  for (const char* id : {"a", "b", "c"}) addIdle(id);
  EXPECT_THAT(set_.reserve(2), ElementsAre("a", "b"));
  EXPECT_THAT(set_.reserve(2), ElementsAre("c")) << "a reserved worker is not reserved twice";
  set_.assignJob(jobFor("a"));
  set_.releaseReserved({"a", "b"});
  EXPECT_EQ(info("a").state, WorkerState::busy);
  EXPECT_EQ(info("a").lease, jobFor("a").lease);
  EXPECT_EQ(info("a").since, Instant{Millis(7)});
  EXPECT_TRUE(info("a").lowPriority);
  EXPECT_EQ(info("b").state, WorkerState::idle);
  EXPECT_EQ(info("b").since, now_) << "a claim without a job does not prolong the idle time";
  EXPECT_EQ(info("c").state, WorkerState::reserved);
  EXPECT_THAT(set_.collectRefusals(), IsEmpty());
}

TEST_F(WorkerSetTest, TheStopGraceBeginsOnceAndEndsWithTheJob) {
  addBusy("a");
  EXPECT_FALSE(set_.beginStopGrace({"a's job", 2}, now_)) << "the stop is for a different attempt";
  EXPECT_TRUE(set_.beginStopGrace({"a's job", 1}, now_ + Millis(5)));
  EXPECT_FALSE(set_.beginStopGrace({"a's job", 1}, now_ + Millis(9))) << "a second stop does not extend the grace";
  EXPECT_THAT(set_.markStuck("ep", now_ + Millis(4)), IsEmpty());
  const std::vector<StuckWorker> stuck = set_.markStuck("ep", now_ + Millis(5));
  ASSERT_EQ(stuck.size(), 1U);
  EXPECT_EQ(stuck[0].worker, "a");
  EXPECT_EQ(stuck[0].job, "a's job");
  EXPECT_THAT(set_.markStuck("ep", now_ + Millis(5)), IsEmpty()) << "reported once";
  EXPECT_TRUE(set_.makeIdle("a", now_ + Millis(6))) << "the handler has returned after all";
  EXPECT_EQ(info("a").stuckFrom, Instant::max());
  EXPECT_EQ(info("a").lease, LeaseRef{});
}

TEST_F(WorkerSetTest, ARefusedEventChangesNoStateAndIsReportedOnce) {
  addBusy("a");
  set_.stopWorker("a");
  set_.assignJob(jobFor("a"));
  set_.assignJob(jobFor("unknown"));
  EXPECT_EQ(info("a").state, WorkerState::busy);
  EXPECT_EQ(set_.all().size(), 1U);
  EXPECT_THAT(set_.collectRefusals(),
              ElementsAre(HasSubstr("a is busy and ignores the event stopWorker"),
                          HasSubstr("a is busy and ignores the event assign"), HasSubstr("unknown does not exist")));
  EXPECT_THAT(set_.collectRefusals(), IsEmpty());
  addIdle("b");
  EXPECT_FALSE(set_.makeIdle("b", now_ + Millis(1)));
  EXPECT_EQ(info("b").since, now_);
  EXPECT_THROW(set_.makeIdle("unknown", now_), std::out_of_range);
}

TEST_F(WorkerSetTest, LeavingAndStuckWorkersDoNotStay) {
  const auto first = std::make_shared<const Release>();
  const auto second = std::make_shared<const Release>();
  for (const auto& [id, release] : {std::pair("a", first), {"b", first}, {"c", second}, {"d", second}}) {
    set_.add(id, {WorkerState::starting, now_, now_, release});
    EXPECT_TRUE(set_.makeIdle(id, now_));
  }
  EXPECT_THAT(set_.staying(), UnorderedElementsAre(Pair(first, 2), Pair(second, 2)));
  set_.stopWorker("a");
  EXPECT_THAT(set_.reserve(1), ElementsAre("b"));
  set_.assignJob(jobFor("b"));
  EXPECT_TRUE(set_.beginStopGrace({"b's job", 1}, now_));
  EXPECT_EQ(set_.markStuck("ep", now_).size(), 1U);
  EXPECT_THAT(set_.staying(), ElementsAre(Pair(second, 2)));
  EXPECT_TRUE(set_.makeIdle("b", now_)) << "the handler has returned after all";
  for (const char* id : {"a", "c"}) EXPECT_TRUE(set_.remove(id).has_value());
  EXPECT_THAT(set_.staying(), UnorderedElementsAre(Pair(first, 1), Pair(second, 1)));
}

TEST_F(WorkerSetTest, AWorkerMayEndInEachState) {
  addBusy("busy");
  addIdle("idle");
  set_.add("starting", {});
  for (const char* id : {"busy", "idle", "starting"}) EXPECT_TRUE(set_.remove(id).has_value()) << id;
  EXPECT_FALSE(set_.remove("busy").has_value());
  EXPECT_THAT(set_.collectRefusals(), IsEmpty());
}

}  // namespace
}  // namespace jobq
