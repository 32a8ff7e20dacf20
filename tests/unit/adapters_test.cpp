// Tests of the adapters between stages (core/adapters.h).
#include "core/adapters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/jobs/completion_notifier.h"
#include "core/workers/worker_pools.h"
#include "core/workers/worker_supervisor.h"
#include "endpoint_fixture.h"
#include "executor_fixture.h"

namespace jobq {
namespace {

class AdaptersTest : public testing::Test {
 protected:
  test::EndpointFixture world_;
  test::EndpointFixture::Node node_{world_, {test::EndpointFixture::fixedEndpoint("file")}};
  test::ExecutorFixture fixture_;
  WorkerPools pools_{{fixture_.queueSignal, fixture_.storage.clock, fixture_.storage.log}, {}};
  WorkerSupervisor supervisor_{
      {pools_, *fixture_.storage, fixture_.queueSignal, fixture_.executor, fixture_.running, fixture_.storage.log},
      "node"};
  const std::string name_ = "node";
  NodeWorkers workers_{{pools_, supervisor_, fixture_.executor, *fixture_.storage, name_}};
  EndpointLifecycle lifecycle_{{node_.registry, node_.endpoints, pools_, fixture_.watch}};
};

TEST_F(AdaptersTest, TheLoadIsThatOfAllNodes) {
  fixture_.storage.insert("a");
  fixture_.storage.insert("b");
  WorkerCounts counts;
  counts.running = 3;
  const EndpointWorkers others{"ep", counts};
  fixture_.storage->workers().beat("other", {&others, 1});
  fixture_.storage->workers().beat("node", {&others, 1});
  EXPECT_EQ(workers_.running("ep"), 3U) << "the pools know the workers of this node";
  EXPECT_EQ(workers_.counts("ep").running, 3U);
  EXPECT_EQ(workers_.waiting("ep"), 2U);
  EXPECT_EQ(workers_.running("none"), 0U);
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
  const EndpointKeys keys(node_.registry);
  EXPECT_EQ(keys.webhookKey("file"), "") << "the secret of the server counts";
  EXPECT_EQ(keys.webhookKey("none"), "");
}

}  // namespace
}  // namespace jobq
