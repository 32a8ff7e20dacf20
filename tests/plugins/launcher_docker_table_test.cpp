// The table of workers of launcher_docker, without threads of a launcher.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jobq/time.h"
#include "jobq/worker_launcher.h"
#include "testkit/wait_for.h"
#include "worker_table.h"

namespace jobq::docker {
namespace {

constexpr Millis kNever{3'600'000};

class WorkerTableTest : public testing::Test {
 protected:
  void add(const WorkerId& worker, const std::string& image = "image") {
    ContainerSpec container;
    container.image = image;
    table_.addLaunch({worker, "ep", std::move(container), {{"KEY", worker}}});
  }
  ClaimedLaunch claim() {
    const testkit::HangGuard guard("a launch");
    return table_.awaitLaunch().value();
  }
  DueSignal awaitSignal() {
    const testkit::HangGuard guard("a signal");
    return table_.awaitSignals().at(0);
  }
  void run(const WorkerId& worker) {
    add(worker);
    EXPECT_EQ(claim().launch.worker, worker);
    table_.markRunning(worker, "c-" + worker);
  }
  /// Returns the exits since the last call, as "worker: reason".
  std::vector<std::string> exits() {
    std::vector<std::string> lines;
    for (const WorkerExit& exit : table_.collectExits()) {
      lines.push_back(exit.worker + (exit.isFailure ? " failed: " : ": ") + exit.reason);
    }
    return lines;
  }

  WorkerTable table_;
};

using Lines = std::vector<std::string>;
const Lines kStopped{"a: it was stopped before it began"};

TEST_F(WorkerTableTest, LaunchesAreClaimedInTheirOrder) {
  table_.openLaunches();
  for (const char* const worker : {"b", "c", "a"}) add(worker);
  EXPECT_EQ(claim().launch.worker, "b");
  const ClaimedLaunch second = claim();
  EXPECT_EQ(second.launch.worker, "c");
  EXPECT_EQ(second.launch.env.at("KEY"), "c");
  EXPECT_EQ(claim().launch.worker, "a");
}

TEST_F(WorkerTableTest, LaunchesWaitUntilTheTableIsOpen) {
  add("a");
  auto claimed = std::async(std::launch::async, [this] { return table_.awaitLaunch(); });
  EXPECT_EQ(claimed.wait_for(Millis(20)), std::future_status::timeout);
  table_.openLaunches();
  EXPECT_EQ(testkit::resultOf("the launch", claimed)->launch.worker, "a");
}

TEST_F(WorkerTableTest, AStoppedLaunchIsNotClaimed) {
  add("a");
  add("b");
  table_.stopWorker("a", kNever);
  EXPECT_EQ(exits(), kStopped);
  table_.openLaunches();
  EXPECT_EQ(claim().launch.worker, "b");
}

TEST_F(WorkerTableTest, AStopReachesAStart) {
  table_.openLaunches();
  add("a");
  const ClaimedLaunch claimed = claim();
  EXPECT_FALSE(claimed.stop.stop_requested());
  table_.stopWorker("a", kNever);
  EXPECT_TRUE(claimed.stop.stop_requested());
  EXPECT_EQ(exits(), Lines());
  table_.endStart("a", {false, "it was stopped before it began", false});
  EXPECT_EQ(exits(), kStopped);
}

TEST_F(WorkerTableTest, AFailedStartMayLeaveAContainer) {
  table_.openLaunches();
  add("a");
  (void)claim();
  table_.endStart("a", {true, "no", true});
  EXPECT_EQ(exits(), Lines());
  EXPECT_EQ(table_.watchedWorkers(), std::set<WorkerId>{"a"});
  EXPECT_FALSE(table_.findWatched("a")->isRunning);
  table_.endWorker("a", true, "no");
  EXPECT_EQ(exits(), Lines{"a failed: no"});
  EXPECT_FALSE(table_.contains("a"));
}

TEST_F(WorkerTableTest, OneThreadPullsAnImage) {
  table_.openLaunches();
  add("a");
  add("b");
  add("c", "another");
  const ClaimedLaunch first = claim();
  const ClaimedLaunch second = claim();
  EXPECT_TRUE(table_.beginPull(first));
  EXPECT_FALSE(table_.beginPull(second));
  EXPECT_EQ(claim().launch.worker, "c") << "b waits for the pull";
  table_.endPull("image");
  const ClaimedLaunch again = claim();
  EXPECT_EQ(again.launch.worker, "b");
  EXPECT_EQ(again.launch.env.at("KEY"), "b");
}

TEST_F(WorkerTableTest, AStopBeforeThePullOfASecondImageEndsTheWorker) {
  table_.openLaunches();
  add("b");
  add("a");
  const ClaimedLaunch first = claim();
  const ClaimedLaunch second = claim();
  EXPECT_TRUE(table_.beginPull(first));
  table_.stopWorker("a", kNever);
  EXPECT_FALSE(table_.beginPull(second));
  EXPECT_EQ(exits(), kStopped);
}

TEST_F(WorkerTableTest, AFailureOfDockerEndsTheQueueOnly) {
  table_.openLaunches();
  run("a");
  add("b");
  table_.failQueued("no Docker");
  EXPECT_EQ(exits(), Lines{"b failed: no Docker"});
  EXPECT_TRUE(table_.contains("a"));
}

TEST_F(WorkerTableTest, AStopSendsSigtermAndThenSigkill) {
  table_.openLaunches();
  run("a");
  table_.stopWorker("a", kNever);
  const DueSignal first = awaitSignal();
  EXPECT_EQ(first.container, "c-a");
  EXPECT_FALSE(first.isKill);
  table_.noteSignal(first, true);
  EXPECT_FALSE(table_.findWatched("a")->wasKilled);
  table_.stopWorker("a", Millis(500));
  const DueSignal second = awaitSignal();
  EXPECT_TRUE(second.isKill);
  table_.noteSignal(second, true);
  EXPECT_TRUE(table_.findWatched("a")->wasKilled);
}

// A thread that stands still for the whole grace sends no SIGTERM.
TEST_F(WorkerTableTest, AStopSendsSigkillAfterTheGracePeriod) {
  table_.openLaunches();
  run("a");
  const auto begin = std::chrono::steady_clock::now();
  table_.stopWorker("a", Millis(500));
  DueSignal signal = awaitSignal();
  while (!signal.isKill) {
    table_.noteSignal(signal, true);
    signal = awaitSignal();
    EXPECT_TRUE(signal.isKill) << "the next signal is a kill";
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, Millis(500));
}

TEST_F(WorkerTableTest, ALaterStopShortensTheGraceOnly) {
  table_.openLaunches();
  run("a");
  table_.stopWorker("a", kNever);
  table_.noteSignal(awaitSignal(), true);
  table_.stopWorker("a", Millis(0));
  table_.stopWorker("a", kNever);
  EXPECT_TRUE(awaitSignal().isKill);
}

TEST_F(WorkerTableTest, AnUnsentSignalIsDueAgain) {
  table_.openLaunches();
  run("a");
  table_.stopWorker("a", kNever);
  table_.noteSignal(awaitSignal(), false);
  EXPECT_FALSE(awaitSignal().isKill);
}

TEST_F(WorkerTableTest, AStopDuringTheStartIsSentAfterwards) {
  table_.openLaunches();
  add("a");
  (void)claim();
  table_.stopWorker("a", kNever);
  table_.markRunning("a", "c");
  EXPECT_EQ(awaitSignal().container, "c");
}

TEST_F(WorkerTableTest, UnknownWorkersAreIgnored) {
  table_.stopWorker("none", Millis(0));
  table_.noteSignal({"none", "c", true}, true);
  table_.endStart("none", {});
  EXPECT_EQ(table_.findWatched("none"), std::nullopt);
  EXPECT_EQ(exits(), Lines());
}

TEST_F(WorkerTableTest, TheEndEndsAllWaits) {
  table_.openLaunches();
  add("a");
  const ClaimedLaunch claimed = claim();
  auto launch = std::async(std::launch::async, [this] { return table_.awaitLaunch().has_value(); });
  auto signals = std::async(std::launch::async, [this] { return table_.awaitSignals().size(); });
  table_.close();
  EXPECT_FALSE(testkit::resultOf("the wait for a launch", launch));
  EXPECT_EQ(testkit::resultOf("the wait for signals", signals), 0U);
  EXPECT_FALSE(table_.awaitPass());
  EXPECT_TRUE(claimed.stop.stop_requested());
}

}  // namespace
}  // namespace jobq::docker
