// Tests of the answers about a worker pool (core/workers/pool_status.h).
#include "core/workers/pool_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "core/endpoints/endpoint.h"
#include "jobq/node_store.h"

namespace jobq {
namespace {

TEST(PoolStatusTest, AWaitingJobHasAReason) {
  Endpoint endpoint;
  PoolStatus status;
  EXPECT_EQ(waitReason(status, endpoint, false), "no_workers");
  status.exists = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "starting") << "the first worker is about to start";
  EXPECT_EQ(waitReason(status, endpoint, true), "no_workers") << "low-priority jobs start no worker";
  status.counts.throttled = 1;
  EXPECT_EQ(waitReason(status, endpoint, true), "worker_crashing");
  status.counts = {};
  status.counts.unhealthy = 1;
  EXPECT_EQ(waitReason(status, endpoint, false), "worker_crashing");
  status.counts.initializing = 1;
  EXPECT_EQ(waitReason(status, endpoint, false), "starting");
  status.counts.running = 1;
  EXPECT_EQ(waitReason(status, endpoint, false), "workers_busy");
  status.isDrained = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "draining");
  endpoint.spec.workersMax = 0;
  EXPECT_EQ(waitReason(status, endpoint, false), "no_workers");
  endpoint.spec.paused = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "paused");
}

TEST(PoolStatusTest, ALauncherStartsRemoteWorkers) {
  auto release = std::make_shared<Release>();
  release->isRemote = true;
  Endpoint endpoint;
  endpoint.spec.id = "ep";
  endpoint.release = release;
  PoolStatus status{true, {}};
  EXPECT_EQ(waitReason(status, endpoint, false), "no_workers");
  const auto advice = [&](bool hasServed, AdviceReader reader = AdviceReader::administrator) {
    return workerAdvice(status, endpoint, hasServed, reader);
  };
  EXPECT_THAT(advice(false), testing::Optional(testing::HasSubstr("jobqctl worker env ep")));
  status.launchFault = "the template has no command";
  EXPECT_THAT(advice(true),
              testing::Optional(testing::HasSubstr("the launcher starts none: the template has no command")));
  EXPECT_THAT(advice(true, AdviceReader::client),
              testing::Optional(testing::HasSubstr("the launcher starts none: an administrator finds the reason")));
  status.isLaunched = true;
  status.launchFault.reset();
  EXPECT_EQ(waitReason(status, endpoint, false), "starting");
  EXPECT_EQ(waitReason(status, endpoint, true), "no_workers") << "low-priority jobs start no worker";
  EXPECT_FALSE(advice(false).has_value());
  status.launchFault = "it ended with exit code 3";
  EXPECT_THAT(advice(false), testing::Optional(testing::HasSubstr("it ended with exit code 3")));
  EXPECT_THAT(advice(false, AdviceReader::client),
              testing::Optional(testing::AllOf(testing::HasSubstr("GET /v1/endpoints/ep"),
                                               testing::Not(testing::HasSubstr("exit code")))));
}

TEST(PoolStatusTest, LeavingAndStuckWorkersAreNotActive) {
  PoolStatus status;
  status.counts.unhealthy = 2;
  EXPECT_TRUE(hasNoActiveWorkers(status));
  for (auto member : {&WorkerCounts::idle, &WorkerCounts::initializing, &WorkerCounts::running}) {
    status.counts = {};
    status.counts.*member = 1;
    EXPECT_FALSE(hasNoActiveWorkers(status));
  }
}

}  // namespace
}  // namespace jobq
