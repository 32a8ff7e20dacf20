// Tests of the small parts of a node: the name, the part of common numbers, and the fence of the runs.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/process/node_name.h"
#include "core/workers/node/node_share.h"
#include "core/workers/run/running_jobs.h"
#include "testkit/temporary_folder.h"

namespace jobq {
namespace {

// core/workers/lease_keeper.h: a node that may have lost its leases stops its handlers.
TEST(RunningJobs, AFenceStopsPresentAndFutureRunsButNoReports) {
  RunningJobs running;
  const RunningJobs::Entry runs(running, {"runs", 1});
  const RunningJobs::Entry reports(running, {"reports", 1});
  EXPECT_TRUE(reports.beginReport());
  EXPECT_EQ(running.fence(), (std::vector<LeaseRef>{{"runs", 1}}));
  EXPECT_TRUE(running.fence().empty()) << "each run is fenced once";
  {
    const RunningJobs::Entry later(running, {"later", 1});
    EXPECT_TRUE(later.token().stop_requested());
    EXPECT_FALSE(later.beginReport());
    EXPECT_TRUE(running.endedFenced().empty()) << "the handlers still run";
  }
  EXPECT_EQ(running.endedFenced(), (std::vector<LeaseRef>{{"later", 1}}));
  running.unfence();
  EXPECT_FALSE(runs.beginReport()) << "a stopped handler stays stopped";
  EXPECT_TRUE(RunningJobs::Entry(running, {"next", 1}).beginReport());
  running.forgetFenced(1);
  EXPECT_TRUE(running.endedFenced().empty());
}

TEST(NodeName, IsTheSameAtEachStart) {
  const testkit::TemporaryFolder folder;
  const testkit::TemporaryFolder other;
  const std::string name = nodeName("", folder);
  EXPECT_EQ(nodeName("", folder), name);
  EXPECT_NE(nodeName("", other), name);
  EXPECT_LE(name.size(), 64U);
  EXPECT_EQ(nodeName("mine", folder), "mine");
  std::ofstream(folder / "node-id") << "not an id";
  EXPECT_NE(nodeName("", folder), name) << "a damaged file is replaced";
}

TEST(NodeShare, ThePartsOfAllNodesSumToTheWhole) {
  for (const char* endpoint : {"ep", "other", "x"}) {
    for (std::uint32_t nodes = 1; nodes <= 5; ++nodes) {
      for (std::uint32_t whole = 0; whole <= 12; ++whole) {
        std::uint32_t sum = 0;
        for (std::uint32_t index = 0; index < nodes; ++index) {
          const std::uint32_t part = NodeShare{index, nodes}.of(whole, endpoint);
          EXPECT_LE(part, whole / nodes + 1);
          sum += part;
        }
        EXPECT_EQ(sum, whole) << nodes << " nodes";
      }
    }
  }
  EXPECT_EQ(NodeShare{}.of(7, "ep"), 7U);
}

TEST(NodeShare, SingleWorkersOfDifferentEndpointsAreAtDifferentNodes) {
  std::uint32_t atTheFirst = 0;
  for (int i = 0; i < 30; ++i) atTheFirst += NodeShare{0, 3}.of(1, "endpoint" + std::to_string(i));
  EXPECT_GT(atTheFirst, 3U);
  EXPECT_LT(atTheFirst, 20U);
}

}  // namespace
}  // namespace jobq
