// Tests of the adapters between stages (core/adapters.h).
#include "core/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/auth/process_keys.h"
#include "core/jobs/completion_notifier.h"
#include "core/workers/launched/launched_workers.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/remote/remote_workers.h"
#include "endpoint_fixture.h"
#include "executor_fixture.h"
#include "tests/support/shared_memory.h"

namespace jobq {
namespace {

class AdaptersTest : public testing::Test {
 protected:
  test::EndpointFixture world_;
  test::EndpointFixture::Node node_{world_, {test::EndpointFixture::fixedEndpoint("file")}};
  test::ExecutorFixture fixture_;
  WorkerPools pools_{{fixture_.queueSignal, fixture_.storage.clock, fixture_.storage.log}, {}};
  NodeLife nodeLife_{*fixture_.storage, "node"};
  WorkerSupervisor supervisor_{{pools_, *fixture_.storage, fixture_.queueSignal, fixture_.executor, fixture_.running,
                                nodeLife_, fixture_.storage.log},
                               "node"};
  std::atomic<bool> draining_ = false;
  ProcessKeys processKeys_;
  RemoteWorkers remote_{{fixture_.remoteRuns, pools_, draining_, fixture_.storage.log}};
  LaunchKeys launchKeys_{processKeys_};
  LaunchedWorkers launched_{{nullptr, pools_, remote_, *fixture_.storage, fixture_.queueSignal, launchKeys_, nodeLife_,
                             fixture_.storage.clock, fixture_.storage.log},
                            "node"};
  NodeWorkers workers_{{pools_, supervisor_, fixture_.executor, remote_, launched_, *fixture_.storage, nodeLife_}};
  EndpointLifecycle lifecycle_{{node_.registry, node_.endpoints, workers_, pools_, fixture_.watch}};
};

TEST_F(AdaptersTest, TheLoadCountsAllNodes) {
  fixture_.storage.insert("a");
  fixture_.storage.insert("b");
  WorkerCounts counts;
  counts.running = 3;
  const EndpointWorkers others{"ep", counts};
  EXPECT_EQ(workers_.waiting("ep"), 2U);
  const auto shared = test::sharedMemory(fixture_.storage.clock, fixture_.storage.log);
  const NodeWorkers workers({pools_, supervisor_, fixture_.executor, remote_, launched_, *shared, nodeLife_});
  NodeStore& nodes = shared->nodes();
  EXPECT_EQ(nodes.beat(nodes.join("other"), {&others, 1}), BeatResult::extended);
  EXPECT_EQ(nodes.beat(nodes.join("node"), {&others, 1}), BeatResult::extended);
  EXPECT_EQ(workers.running("ep"), 3U) << "the pools know the workers of the node";
  EXPECT_EQ(workers.counts("ep").running, 3U);
  EXPECT_EQ(workers.running("none"), 0U);
  EXPECT_FALSE(workers.hasNoActiveWorkers("ep"));
  EXPECT_TRUE(workers.hasNoActiveWorkers("none"));
  pools_.setEndpoint(fixture_.endpoint);
  EXPECT_EQ(workers.waitReason(*fixture_.endpoint, false), "workers_busy");
  EXPECT_EQ(workers.nodes(), 1U);
  nodeLife_.setShare({1, 3});
  EXPECT_EQ(workers.nodes(), 3U);
}

TEST_F(AdaptersTest, AnEndpointComesAndLeaves) {
  EXPECT_TRUE(lifecycle_.hasNoActiveWorkers("ep"));
  EXPECT_EQ(workers_.waitReason(*fixture_.endpoint, false), "no_workers");
  lifecycle_.endpointChanged("ep", fixture_.endpoint);
  EXPECT_TRUE(pools_.status("ep").exists);
  lifecycle_.endpointChanged("ep", nullptr);
  EXPECT_TRUE(lifecycle_.hasNoActiveWorkers("ep"));
  EXPECT_FALSE(lifecycle_.isInUse("ep"));
}

TEST_F(AdaptersTest, AnUnknownEndpointHasNoSecret) {
  const EndpointKeys keys(node_.registry, WebhookBackoff());
  EXPECT_EQ(keys.webhookKey("file"), "") << "the secret of the server counts";
  EXPECT_EQ(keys.webhookKey("none"), "");
}

}  // namespace
}  // namespace jobq
