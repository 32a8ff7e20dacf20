// Tests of the tables of a remote worker (core/workers/remote/remote_worker_state.h), and of the state in the view.
#include "core/workers/remote/remote_worker_state.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/workers/remote/remote_table.h"
#include "core/workers/remote/remote_view.h"

namespace jobq {
namespace {

// Checks each pair of a state and an event, which are the numbers of the rows and columns.
template <const auto& kTable, std::size_t kStates, std::size_t kEvents>
void expectTable(const std::optional<typename TableState<kTable>::State> (&expected)[kStates][kEvents]) {
  for (std::size_t state = 0; state < kStates; ++state) {
    for (std::size_t event = 0; event < kEvents; ++event) {
      const auto from = static_cast<typename TableState<kTable>::State>(state);
      const auto by = static_cast<typename TableState<kTable>::Event>(event);
      EXPECT_EQ(nextState(kTable, from, by), expected[state][event]) << "event " << event << " in state " << state;
    }
  }
}

TEST(RemoteWorkerStateTest, EachStateAndEventHasTheStateOfTheDrawing) {
  using enum RemoteWorkerState;
  constexpr auto no = std::nullopt;
  expectTable<kRemoteWorkerTransitions, 4, 3>({
      // leave, disconnect, retire
      {leaving, no, retired},   // serving
      {no, serving, retiring},  // leaving
      {no, retired, no},        // retiring
      {retiring, no, no},       // retired
  });
}

TEST(RemoteWorkerStateTest, EachPairOfEarlierJobsHasTheStateOfTheDrawing) {
  using enum EarlierJobs;
  constexpr auto no = std::nullopt;
  expectTable<kEarlierJobsTransitions, 4, 4>({
      // ping, call, callWithJobs, callWithoutJobs
      {pinged, known, unknown, known},  // unasked
      {no, known, unknown, known},      // pinged
      {known, no, no, known},           // unknown
      {no, no, no, no},                 // known
  });
}

TEST(RemoteWorkerStateTest, ARefusedEventChangesNothing) {
  TableState<kRemoteWorkerTransitions> state;
  EXPECT_FALSE(state.apply(RemoteWorkerEvent::disconnect));
  EXPECT_EQ(state.get(), RemoteWorkerState::serving);
  EXPECT_TRUE(state.permits(RemoteWorkerEvent::retire));
  EXPECT_TRUE(state.apply(RemoteWorkerEvent::retire));
  EXPECT_FALSE(state.permits(RemoteWorkerEvent::retire));
  EXPECT_FALSE(state.apply(RemoteWorkerEvent::retire));
  EXPECT_EQ(state.get(), RemoteWorkerState::retired);
}

TEST(RemoteWorkerStateTest, TheViewHasTheMostUrgentState) {
  const RemoteWorkerKey key{"ep", "w"};
  const Instant now{Millis(1'000'000)};
  RemoteTable table(false);
  RemoteChanges changes;
  RemoteWorker& worker = *table.findOrAdd(key, now);
  worker.link.noteOpened();
  const auto shownState = [&] { return std::string(viewRemoteWorkers(table, "ep", now).at(0).state); };
  const auto callForJobs = [&] {
    table.beginTake(key, worker, std::make_shared<RemoteTake>(), std::nullopt, now, changes);
  };
  EXPECT_EQ(shownState(), "starting");
  worker.state.apply(RemoteWorkerEvent::leave);
  EXPECT_EQ(shownState(), "starting") << "the report of an earlier job came before the first call";
  callForJobs();
  EXPECT_EQ(shownState(), "leaving");
  worker.unhealthy = "disk";
  EXPECT_EQ(shownState(), "unhealthy");
  EXPECT_EQ(viewRemoteWorkers(table, "ep", now).at(0).reason, "disk");
  callForJobs();
  EXPECT_EQ(shownState(), "leaving") << "an unhealthy worker does not call";
  worker.state.apply(RemoteWorkerEvent::retire);
  EXPECT_TRUE(loadsOfRemoteWorkers(table, "ep", now).at("w").isLeaving) << "the worker has asked to be replaced";
  table.noteClosed(key, ConnectionEnd::inOrder, now);
  worker.link.noteOpened();
  EXPECT_EQ(shownState(), "leaving");
  EXPECT_FALSE(loadsOfRemoteWorkers(table, "ep", now).at("w").isLeaving) << "the server alone ends the worker";
}

}  // namespace
}  // namespace jobq
