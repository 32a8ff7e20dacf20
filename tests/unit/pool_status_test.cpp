// Tests of the answers about a worker pool (core/workers/pool/pool_status.h).
#include "core/workers/pool/pool_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "core/endpoints/endpoint.h"
#include "core/workers/pool/worker_pool.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
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
  status.lacksGpu = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "no_gpu");
  status.counts.initializing = 1;
  EXPECT_EQ(waitReason(status, endpoint, false), "starting") << "the endpoint has got a GPU";
  status.counts.running = 1;
  EXPECT_EQ(waitReason(status, endpoint, false), "workers_busy");
  status.isDrained = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "draining");
  endpoint.spec.workersMax = 0;
  EXPECT_EQ(waitReason(status, endpoint, false), "no_workers");
  endpoint.spec.paused = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "paused");
}

// A release from remote workers to threads: the places of one remote worker are one worker, beside the threads.
TEST(PoolStatusTest, RemoteWorkersAndThreadsAreCountedTogether) {
  const auto endpointOf = [](bool isRemote) {
    auto release = std::make_shared<Release>();
    release->isRemote = isRemote;
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->release = std::move(release);
    endpoint->spec.workersMax = 9;
    return endpoint;
  };
  WorkerPool pool(endpointOf(true));
  for (const WorkerId place : {"a:1", "a:2", "a:3", "b:4"}) {
    EXPECT_TRUE(pool.addWorker(place, {}, {}));
    EXPECT_TRUE(pool.recordReady(place, {}));
  }
  for (const WorkerId place : {"a:1", "a:2"}) {
    ClaimedJob job;
    job.worker = place;
    job.lease = {place, 1};
    pool.workers().reserveWorker(place);
    pool.workers().assignJob(job);
  }
  EXPECT_EQ(pool.status({}).counts.running, 1U);
  EXPECT_EQ(pool.status({}).counts.idle, 1U);
  pool.change(endpointOf(false));
  EXPECT_TRUE(pool.addWorker("starting", {}, {}));
  EXPECT_TRUE(pool.addWorker("idle", {}, {}));
  EXPECT_TRUE(pool.recordReady("idle", {}));
  const WorkerCounts counts = pool.status({}).counts;
  EXPECT_EQ(counts.running, 1U) << "the remote worker with two jobs";
  EXPECT_EQ(counts.idle, 2U) << "the remote worker without a job, and a thread";
  EXPECT_EQ(counts.ready, 2U);
  EXPECT_EQ(counts.initializing, 1U);
  for (const WorkerId place : {"a:1", "a:2"}) {
    EXPECT_TRUE(pool.workers().beginStopGrace({place, 1}, {}));
    EXPECT_EQ(pool.workers().markStuck("ep", {}).size(), 1U);
  }
  EXPECT_EQ(pool.status({}).counts.unhealthy, 0U) << "the worker itself has not reported a fault";
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
  status.lacksGpu = true;
  EXPECT_EQ(waitReason(status, endpoint, false), "no_gpu");
  EXPECT_THAT(advice(false, AdviceReader::client), testing::Optional(testing::HasSubstr("launcher.gpus are in use")));
  status.lacksGpu = false;
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
