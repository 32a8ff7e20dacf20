// Conformance: WorkerStore (worker_store.h).
#pragma once

#include <vector>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, WorkersOfLivingNodesAreSummed) {
  WorkerStore& workers = storage_->workers();
  WorkerCounts two;
  two.idle = 2;
  WorkerCounts one;
  one.running = 1;
  workers.beat("n1", std::vector<EndpointWorkers>{{"ep", two}, {"other", one}});
  workers.beat("n2", std::vector<EndpointWorkers>{{"ep", one}});
  EXPECT_EQ(workers.count("ep", "").idle, 2U);
  EXPECT_EQ(workers.count("ep", "").running, 1U);
  EXPECT_EQ(workers.count("ep", "n1").idle, 0U);
  EXPECT_EQ(workers.count("ep", "n1").running, 1U);
  clock_.advance(kBeatLife - Millis(1));
  workers.beat("n2", std::vector<EndpointWorkers>{});
  EXPECT_EQ(workers.count("ep", "").running, 0U) << "a beat replaces what was said before";
  clock_.advance(Millis(1));
  EXPECT_EQ(workers.count("ep", "").idle, 0U) << "n1 is silent for too long";
  auto nodes = workers.nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].node, "n1");
  EXPECT_FALSE(nodes[0].alive);
  EXPECT_TRUE(nodes[1].alive);
  clock_.advance(Millis(86'400'000));
  workers.beat("n3", std::vector<EndpointWorkers>{});
  nodes = workers.nodes();
  ASSERT_EQ(nodes.size(), 1U) << "forgotten after a day";
  EXPECT_EQ(nodes[0].node, "n3");
}

TEST_P(StorageSuite, EveryCounterOfAWorkerIsKept) {
  const WorkerCounts all{1, 2, 3, 4, 5, 6};
  workers().beat("n1", std::vector<EndpointWorkers>{{"ep", all}});
  EXPECT_EQ(workers().count("ep", ""), all);
  workers().beat("n2", std::vector<EndpointWorkers>{{"ep", all}});
  EXPECT_EQ(workers().count("ep", ""), (WorkerCounts{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(workers().count("ep", "n2"), all);
  EXPECT_EQ(workers().count("ep", "unknown node"), (WorkerCounts{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(workers().count("none", ""), WorkerCounts{});
}

TEST_P(StorageSuite, ABeatReplacesWhatTheNodeSaidBefore) {
  workers().beat("n1", std::vector<EndpointWorkers>{{"one", {1, 0, 0, 0, 0, 0}}, {"two", {1, 0, 0, 0, 0, 0}}});
  workers().beat("n1", std::vector<EndpointWorkers>{{"two", {0, 0, 0, 7, 0, 0}}});
  EXPECT_EQ(workers().count("one", ""), WorkerCounts{});
  EXPECT_EQ(workers().count("two", ""), (WorkerCounts{0, 0, 0, 7, 0, 0}));
}

TEST_P(StorageSuite, NodesAreListedByNameUntilADayAfterTheirLastBeat) {
  EXPECT_TRUE(workers().nodes().empty());
  const Instant first = clock_.now();
  workers().beat("zeta", {});
  workers().beat("alpha", {});
  clock_.advance(Millis(86'399'999));
  workers().beat("alpha", {});
  sweepAll();
  auto nodes = workers().nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].node, "alpha");
  EXPECT_EQ(nodes[0].lastBeat, clock_.now());
  EXPECT_TRUE(nodes[0].alive);
  EXPECT_EQ(nodes[1].node, "zeta");
  EXPECT_EQ(nodes[1].lastBeat, first);
  EXPECT_FALSE(nodes[1].alive);
  clock_.advance(Millis(2));
  workers().beat("zeta", {});
  nodes = workers().nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_TRUE(nodes[1].alive) << "a node may come back";
}

}  // namespace jobq::testkit
