// Random schedules for one node, and for one to three nodes on one storage. A failing schedule is shortened and printed
// with the seed.
//   JOBQ_SEED=17 build/tests/simulation_test       plays one seed again
//   JOBQ_SEEDS=100000 build/tests/simulation_test
//   JOBQ_COUNT_TWINS=1 build/tests/simulation_test --gtest_filter='*Twin*'      counts the seeds that find each twin
#include "simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "../../fault/disk.h"
#include "seeds.h"
#include "shrink.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"

namespace jobq::model {
namespace {

constexpr std::uint64_t kSeedsOfNodes = 1'500;
constexpr int kEnough = 3;  // findings of a broken twin

class SimulationTest : public testing::Test {
 protected:
  ~SimulationTest() override { fault::Disk::instance().forget(); }

  std::vector<Move> movesOf(std::uint64_t seed) const {
    return randomMoves(seed, plan_.isShared() ? 120 : 200, plan_.setup);
  }

  /// Returns the finding; empty without a finding.
  std::string play(std::uint64_t seed, const std::vector<Move>& moves) {
    folder_.clear();
    fault::Disk::instance().forget();
    if (plan_.losesPower()) fault::Disk::instance().watch(folder_);
    Simulation simulation(plan_, seed);
    std::string found;
    try {
      simulation.play(moves);
    } catch (const std::logic_error& finding) {
      found = finding.what();
    }
    for (const auto& [event, times] : simulation.played()) played_[std::string(event)] += times;
    return found;
  }

  void playAll(const Seeds& seeds) {
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      const auto moves = movesOf(seed);
      if (play(seed, moves).empty()) continue;
      const auto fewest = shrink<Move>(moves, [&](const auto& fewer) { return !play(seed, fewer).empty(); });
      std::string report;
      for (const Move& move : fewest) report += "\n  " + text(move);
      FAIL() << "seed " << seed << ": " << play(seed, fewest) << "\nafter" << report;
    }
    for (const auto& [event, times] : played_) std::cout << times << " " << event << std::endl;
  }

  /// Returns how many of the first seeds have a finding that is `wanted`.
  int count(std::uint64_t seeds, const std::function<bool(const std::string&)>& isWanted) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) found += isWanted(play(seed, movesOf(seed))) ? 1 : 0;
    return found;
  }

  /// Plays one node on the storage `name`, whose plugin is in `folder`.
  void playOne(NodeSetup setup, const std::string& name, const std::string& folder = JOBQ_PLUGIN_DIR) {
    plan_.setup = setup;
    plan_.open = [this, name, library = folder + "/libjobq_storage_" + name + ".so"](Clock& clock) {
      static testkit::SilentLog log;
      static const testkit::MapConfig config({{"readers", "1"}, {"log", std::to_string(256 << 10)}});
      return std::shared_ptr<Storage>(
          testkit::loadPlugin<Storage>(library, name, PluginEnv{config, clock, log, folder_, false}));
    };
  }

  const testkit::TemporaryFolder folder_;
  Plan plan_;  // of several nodes on the memory storage, unless changed

 private:
  std::map<std::string, std::uint64_t, std::less<>> played_;
};

TEST_F(SimulationTest, OnMemory) {
  playOne(NodeSetup::oneOnMemory, "memory");
  playAll(Seeds(500));
}

TEST_F(SimulationTest, OnSqliteWithCrashes) {
  playOne(NodeSetup::oneOnDisk, "sqlite");
  playAll(Seeds(500));
}

TEST_F(SimulationTest, OfSeveralNodes) { playAll(Seeds(kSeedsOfNodes)); }

TEST_F(SimulationTest, FindsADoubleRunWithoutFencing) {
  playOne(NodeSetup::oneOnMemory, "memory", JOBQ_BROKEN_DIR "/no_fencing");
  plan_.judged = false;  // found by its consequences, not by the wrong answer alone
  EXPECT_GT(count(200, [](const auto& finding) { return finding.starts_with("double run"); }), 10)
      << "the simulation did not notice a late result of a former attempt";
}

TEST_F(SimulationTest, FindsALostReplayWithoutFencingOfDeliveries) {
  playOne(NodeSetup::oneOnMemory, "memory", JOBQ_BROKEN_DIR "/no_delivery_fencing");
  plan_.judged = false;
  EXPECT_GT(count(200, [](const auto& finding) { return finding.starts_with("lost replay"); }), 10)
      << "a late report ended a replay, and the simulation did not notice";
}

TEST_F(SimulationTest, FindsUndoneStepsWithLateSyncs) {
  playOne(NodeSetup::oneOnDisk, "sqlite", JOBQ_BROKEN_DIR "/late_fsync");
  plan_.judged = false;
  const auto isUndone = [](const std::string& finding) {
    return finding.starts_with("double run") || finding.starts_with("epoch not grown") ||
           finding.find(" began attempt ") != std::string::npos;
  };
  EXPECT_GT(count(100, isUndone), 10) << "a loss of power has undone acknowledged steps, and the simulation "
                                         "did not notice";
}

struct TwinCase {
  const char* name;
  Twin twin;
  const char* consequence;  ///< begin of the finding
};

class SimulationTwinTest : public SimulationTest, public testing::WithParamInterface<TwinCase> {};

TEST_P(SimulationTwinTest, IsFound) {
  plan_.twin = GetParam().twin;
  const bool isCounting = std::getenv("JOBQ_COUNT_TWINS") != nullptr;
  std::map<std::string, int> findings;
  int found = 0;
  std::uint64_t seed = 1;
  for (; seed <= kSeedsOfNodes && (isCounting || found < kEnough); ++seed) {
    const std::string finding = play(seed, movesOf(seed));
    if (finding.empty()) continue;
    ++findings[finding.substr(0, finding.find(':'))];
    if (finding.starts_with(GetParam().consequence)) ++found;
  }
  std::cout << "seeds 1 to " << seed - 1;
  for (const auto& [finding, times] : findings) std::cout << ", " << times << " find: " << finding;
  std::cout << std::endl;
  EXPECT_GE(found, kEnough) << "the simulation does not notice the twin";
}

INSTANTIATE_TEST_SUITE_P(Twins, SimulationTwinTest,
                         testing::Values(TwinCase{"NoAttemptFencing", Twin::noAttemptFencing, "double run"},
                                         TwinCase{"NoSelfFencing", Twin::noSelfFencing, "double run"},
                                         TwinCase{"ShortLease", Twin::shortLease, "early loss"},
                                         TwinCase{"NewsLost", Twin::newsLost, "no answer"},
                                         TwinCase{"EpochNotGrown", Twin::epochNotGrown, "epoch not grown"},
                                         TwinCase{"InsertTwice", Twin::insertTwice, "counted twice"},
                                         TwinCase{"FinishTwice", Twin::finishTwice, "counted twice"},
                                         TwinCase{"SweepWithoutCause", Twin::sweepWithoutCause, "double run"},
                                         TwinCase{"HostClock", Twin::hostClock, "early"},
                                         TwinCase{"FencedClaims", Twin::fencedClaims, "a fenced node claims"},
                                         TwinCase{"EarlyRelease", Twin::earlyRelease, "early release"},
                                         TwinCase{"NoBeatGap", Twin::noBeatGap, "early loss"},
                                         TwinCase{"RunsNotFollowed", Twin::runsNotFollowed, "not stopped"},
                                         TwinCase{"ClaimsForgotten", Twin::claimsForgotten, "stuck"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace jobq::model
