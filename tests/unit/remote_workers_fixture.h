// Fixture of tests of remote workers (core/workers/remote/remote_workers.h).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/endpoints/endpoint.h"
#include "core/workers/executor_choice.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "executor_fixture.h"
#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "tests/support/held_caller.h"

namespace jobq::test {

/// Remote workers of the endpoint `ep`, without the calls around them. The clock is moved by hand.
class RemoteWorkersFixture : public testing::Test, protected ExecutorFixture {
 protected:
  RemoteWorkersFixture() {
    auto release = std::make_shared<Release>();
    release->isRemote = true;
    auto remote = std::make_shared<Endpoint>(*endpoint);
    remote->spec.workersMax = 1;
    remote->release = std::move(release);
    pools_.setEndpoint(remote);
  }

  /// Parks a call of the worker, gives the job to the place, and returns the job as received by the worker.
  RemoteRunPtr deliverJob(const JobId& id, const RemoteWorkerKey& key = {"ep", "w"}) {
    storage.insert(id);
    return deliverNextJob(key);
  }
  RemoteRunPtr deliverNextJob(const RemoteWorkerKey& key = {"ep", "w"}) {
    const auto take = remote_.beginTake(key, 1, std::nullopt, caller_.call());
    for (const ClaimedJob& job : claimForPlaces()) remote_.assign(job);
    const auto got = remote_.pollTake(key, *take, false);
    return got && !got->empty() ? got->front() : nullptr;
  }
  /// Claims jobs for all idle places, as the dispatcher does, and returns the jobs, which no worker has yet.
  std::vector<ClaimedJob> claimForPlaces() {
    const auto wants = pools_.reserveWorkers({nullptr, 10, true});
    auto jobs = storage.real->leases().claim(wants, storage.life->holder(), ++lastClaim_).jobs;
    pools_.concludeReservations(wants, jobs);
    return jobs;
  }
  /// Makes the worker known by a call, and opens a connection of it.
  std::shared_ptr<const ConnectionOwner> connectWorker() {
    (void)stopsOf();
    return remote_.connect(key_, WorkerCall::question);
  }
  /// Ends the connection as the kernel does for a worker that is killed.
  static void tear(std::shared_ptr<const ConnectionOwner>& connection) {
    connection->noteEnd(ConnectionEnd::torn);
    connection.reset();
  }
  RemoteRunPtr findRun(const JobId& id, const RemoteWorkerKey& key = {"ep", "w"}) {
    return remote_.findRuns(key, std::vector{id}).at(0);
  }
  void noteResult(const JobId& id, const RemoteRunPtr& run) {
    remote_.noteResults(key_, std::vector{RemoteWorkers::Reported{id, run}}, false);
  }
  void pass(Millis time) {
    storage.clock.advance(time);
    remote_.run();
  }
  std::optional<std::vector<JobId>> stopsOf(const RemoteWorkerKey& key = {"ep", "w"}) {
    if (!stopWait_ || stopWait_->isOver) stopWait_ = remote_.beginStopWait(key, caller_.call());
    return remote_.pollStopWait(key, *stopWait_, false);
  }

  const RemoteWorkerKey key_{"ep", "w"};
  HeldCaller caller_;
  WorkerPools pools_{{queueSignal, storage.clock, storage.log}, {}};
  std::atomic<bool> draining_ = false;
  RemoteWorkers remote_{{remoteRuns, pools_, draining_, storage.log}};
  std::shared_ptr<RemoteStopWait> stopWait_;
  CallId lastClaim_ = 100;
};

}  // namespace jobq::test
