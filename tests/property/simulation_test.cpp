// Random schedules for the whole core. A failing schedule is shortened and printed with its seed.
//   JOBQ_SEED=17 build/tests/simulation_test       plays one seed again
//   JOBQ_SEEDS=100000 build/tests/simulation_test
#include "simulation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../fault/disk.h"
#include "seeds.h"
#include "shrink.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"

namespace jobq::model {
namespace {

constexpr std::size_t kMoves = 200;

std::shared_ptr<Storage> load(const std::string& library, const std::string& name, Clock& clock,
                              const std::filesystem::path& folder) {
  static testkit::SilentLog log;
  static const testkit::MapConfig config({{"readers", "1"}, {"log", std::to_string(256 << 10)}});
  return testkit::loadPlugin<Storage>(library, name, PluginEnv{config, clock, log, folder, false});
}

class SimulationTest : public testing::Test {
 protected:
  ~SimulationTest() override { fault::Disk::instance().forget(); }

  /// Returns the finding; empty without a finding.
  std::string play(std::uint64_t seed, const std::vector<Move>& moves) {
    folder_.clear();
    fault::Disk::instance().forget();
    if (plan_.canCrash) fault::Disk::instance().watch(folder_);
    try {
      Simulation(plan_, seed).play(moves);
    } catch (const Finding& found) {
      return found.what();
    } catch (const Disagreement& found) {
      return found.what();
    }
    return {};
  }

  void playAll(const Seeds& seeds) {
    for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
      const auto moves = randomMoves(seed, kMoves, plan_.canCrash);
      if (play(seed, moves).empty()) continue;
      const auto fewest = shrink<Move>(moves, [&](const auto& fewer) { return !play(seed, fewer).empty(); });
      std::string report;
      for (const Move& move : fewest) report += "\n  " + text(move);
      FAIL() << "seed " << seed << ": " << play(seed, fewest) << "\nafter" << report;
    }
  }

  void onMemory(const std::string& library) {
    plan_.open = [library, this](Clock& clock) { return load(library, "memory", clock, folder_); };
  }

  const testkit::TemporaryFolder folder_;
  SimulationPlan plan_;
};

TEST_F(SimulationTest, OnMemory) {
  onMemory(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so");
  playAll(Seeds(500));
}

TEST_F(SimulationTest, OnSqliteWithCrashes) {
  plan_.open = [this](Clock& clock) {
    return load(JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so", "sqlite", clock, folder_);
  };
  plan_.canCrash = true;
  playAll(Seeds(500));
}

TEST_F(SimulationTest, FindsADoubleRunWithoutFencing) {
  onMemory(JOBQ_BROKEN_DIR "/no_fencing/libjobq_storage_memory.so");
  plan_.judged = false;  // found by its consequences, not by the wrong answer alone
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    found += play(seed, randomMoves(seed, kMoves, false)).starts_with("double run") ? 1 : 0;
  }
  EXPECT_GT(found, 10) << "the simulation did not notice a late result of a former attempt";
}

TEST_F(SimulationTest, FindsALostReplayWithoutFencingOfDeliveries) {
  onMemory(JOBQ_BROKEN_DIR "/no_delivery_fencing/libjobq_storage_memory.so");
  plan_.judged = false;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    found += play(seed, randomMoves(seed, kMoves, false)).starts_with("lost replay") ? 1 : 0;
  }
  EXPECT_GT(found, 10) << "a late report ended a replay, and the simulation did not notice";
}

TEST_F(SimulationTest, FindsUndoneStepsWithLateSyncs) {
  plan_.open = [this](Clock& clock) {
    return load(JOBQ_BROKEN_DIR "/late_fsync/libjobq_storage_sqlite.so", "sqlite", clock, folder_);
  };
  plan_.judged = false;
  plan_.canCrash = true;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const std::string finding = play(seed, randomMoves(seed, kMoves, true));
    found += finding.starts_with("double run") || finding.find(" began attempt ") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(found, 10) << "a loss of power has undone acknowledged steps, and the simulation did not notice";
}

}  // namespace
}  // namespace jobq::model
