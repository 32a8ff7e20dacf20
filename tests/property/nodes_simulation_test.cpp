// Random schedules for one to three nodes on one storage. A failing schedule is shortened and printed with the seed.
//   JOBQ_SEED=17 build/tests/nodes_simulation_test       plays one seed again
//   JOBQ_SEEDS=100000 build/tests/nodes_simulation_test
//   JOBQ_COUNT_TWINS=1 build/tests/nodes_simulation_test --gtest_filter='*Twin*'      counts the seeds that find each
//   twin
#include "nodes_simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "finding.h"
#include "seeds.h"
#include "shrink.h"

namespace jobq::model {
namespace {

constexpr std::size_t kMoves = 120;
constexpr std::uint64_t kSeeds = 1'500;
constexpr int kEnough = 3;  // findings of a broken twin

/// Plays a seed. Returns the finding; empty without a finding. Adds to `sum` what was played.
std::string play(Twin twin, std::uint64_t seed, const std::vector<NodeMove>& moves, Played* sum = nullptr) {
  NodesSimulation simulation(twin, seed);
  std::string found;
  try {
    simulation.play(moves);
  } catch (const Finding& finding) {
    found = finding.what();
  }
  if (sum != nullptr) *sum += simulation.played();
  return found;
}

TEST(NodesSimulationTest, OnMemory) {
  const Seeds seeds(kSeeds);
  Played sum;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const auto moves = randomNodeMoves(seed, kMoves);
    if (play(Twin::none, seed, moves, &sum).empty()) continue;
    const auto fewest =
        shrink<NodeMove>(moves, [&](const auto& fewer) { return !play(Twin::none, seed, fewer).empty(); });
    std::string report;
    for (const NodeMove& move : fewest) report += "\n  " + text(move);
    FAIL() << "seed " << seed << ": " << play(Twin::none, seed, fewest) << "\nafter" << report;
  }
  std::cout << text(sum) << std::endl;
}

struct TwinCase {
  const char* name;
  Twin twin;
  const char* consequence;  ///< begin of the finding
};

class NodesTwinTest : public testing::TestWithParam<TwinCase> {};

TEST_P(NodesTwinTest, IsFound) {
  const bool isCounting = std::getenv("JOBQ_COUNT_TWINS") != nullptr;
  std::map<std::string, int> findings;
  int found = 0;
  std::uint64_t seed = 1;
  for (; seed <= kSeeds && (isCounting || found < kEnough); ++seed) {
    const std::string finding = play(GetParam().twin, seed, randomNodeMoves(seed, kMoves));
    if (finding.empty()) continue;
    ++findings[finding.substr(0, finding.find(':'))];
    if (finding.starts_with(GetParam().consequence)) ++found;
  }
  std::cout << "seeds 1 to " << seed - 1;
  for (const auto& [finding, times] : findings) std::cout << ", " << times << " find: " << finding;
  std::cout << std::endl;
  EXPECT_GE(found, kEnough) << "the simulation does not notice the twin";
}

INSTANTIATE_TEST_SUITE_P(Twins, NodesTwinTest,
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
