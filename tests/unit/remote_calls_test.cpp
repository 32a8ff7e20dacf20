// Tests of parked calls of remote workers whose places the pool does not have, and of jobs that wait for the next call
// (core/workers/remote/remote_workers.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/remote/remote_offers.h"
#include "core/workers/remote/remote_pools.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "remote_workers_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class RemoteCallsTest : public test::RemoteWorkersFixture {
 protected:
  void setWorkersMax(std::uint32_t most) {
    auto release = std::make_shared<Release>();
    release->isRemote = true;
    auto changed = std::make_shared<Endpoint>(*endpoint);
    changed->spec.workersMax = most;
    changed->release = std::move(release);
    pools_.setEndpoint(changed);
  }
};

// The place is gone with the refused job, so no other job would ever come. After an immediate answer, a worker that
// calls again at once would loop.
TEST_F(RemoteCallsTest, ACallWithARefusedJobEndsAfterASecond) {
  const auto connection = connectWorker();
  running.stop(deliverJob("a")->lease());
  testkit::release(storage.real->leases(), std::vector{LeaseRef{"a", 1}});
  const auto take = remote_.beginTake(key_, 1, true, caller_.call());
  storage.clock.advance(Millis(1));
  for (const ClaimedJob& job : claimForPlaces()) remote_.assign(job);
  pass(Millis(999));
  EXPECT_FALSE(remote_.pollTake(key_, *take, false).has_value());
  pass(Millis(1'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
}

// The worker calls again at once: its former place must not be idle for the dispatcher then.
TEST_F(RemoteCallsTest, APlaceLeavesThePoolBeforeItsCallEnds) {
  struct EndOfCall final : CallResumer {
    explicit EndOfCall(const WorkerPools& all) : pools(all) {}
    void resume(std::uint64_t /*call*/) noexcept override { idleAtEnd.push_back(pools.status("ep").counts.idle); }
    const WorkerPools& pools;
    std::vector<std::uint64_t> idleAtEnd;
  } end(pools_);
  const auto take = remote_.beginTake(key_, 1, false, {&end, 1});
  ASSERT_EQ(pools_.status("ep").counts.idle, 1U);
  const auto workers = pools_.view("ep").workers;
  remote_.removePlace(workers.front().id);
  EXPECT_THAT(end.idleAtEnd, testing::ElementsAre(0U));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
}

TEST_F(RemoteCallsTest, AParkedCallIsThereWhenTheEndpointMayHaveWorkers) {
  setWorkersMax(0);
  storage.insert("a");
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  pass(Millis(1'000));
  EXPECT_THAT(claimForPlaces(), IsEmpty());
  setWorkersMax(1);
  pass(Millis(1'000));
  const auto jobs = claimForPlaces();
  ASSERT_THAT(jobs, SizeIs(1));
  remote_.assign(jobs[0]);
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), SizeIs(1));
}

// Another thread has ended the call before the places were in the pool, or between two offers.
TEST_F(RemoteCallsTest, AnEndedCallLeavesNoPlace) {
  RemotePools pools(pools_);
  RemoteOffers offers(pools);
  const auto over = std::make_shared<RemoteTake>();
  over->isOver = true;
  offers.offer("ep", over, {"w:1"});
  EXPECT_THAT(pools_.view("ep").workers, IsEmpty());
  setWorkersMax(0);
  const auto refused = std::make_shared<RemoteTake>();
  offers.offer("ep", refused, {"w:2"});
  refused->isOver = true;
  setWorkersMax(1);
  offers.offerAgain();
  EXPECT_THAT(pools_.view("ep").workers, IsEmpty());
}

TEST_F(RemoteCallsTest, RefusedPlacesAreOfferedUntilTaken) {
  RemotePools pools(pools_);
  RemoteOffers offers(pools);
  setWorkersMax(0);
  const auto take = std::make_shared<RemoteTake>();
  offers.offer("ep", take, {"w:1", "w:2"});
  offers.offerAgain();
  EXPECT_THAT(pools_.view("ep").workers, IsEmpty());
  setWorkersMax(1);
  offers.offerAgain();
  EXPECT_THAT(pools_.view("ep").workers, SizeIs(2));
  pools.removeIdleWorkers({{"ep", "w:1"}, {"ep", "w:2"}});
  offers.offerAgain();
  EXPECT_THAT(pools_.view("ep").workers, IsEmpty()) << "an accepted offer is over";
}

TEST_F(RemoteCallsTest, JobsWaitingForTheNextCallKeepTheOrder) {
  for (const char* id : {"a", "b", "c"}) storage.insert(id);
  const auto take = remote_.beginTake(key_, 3, false, caller_.call());
  const auto jobs = claimForPlaces();
  ASSERT_THAT(jobs, SizeIs(3));
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  for (const ClaimedJob& job : jobs) remote_.assign(job);
  // The client of the first call leaves behind two of the three jobs' way to it.
  const auto left = remote_.beginTake(key_, 2, true, caller_.call());
  const auto second = remote_.beginTake(key_, 1, true, caller_.call());
  EXPECT_TRUE(left->isOver);
  EXPECT_EQ(remote_.pollTake(key_, *second, false).value().at(0)->lease(), jobs[0].lease);
  for (const std::size_t at : {1U, 2U}) {
    const auto next = remote_.beginTake(key_, 1, true, caller_.call());
    EXPECT_EQ(remote_.pollTake(key_, *next, false).value().at(0)->lease(), jobs[at].lease);
  }
}

// Names of workers are free text, and each could ask for 1,000 places.
TEST_F(RemoteCallsTest, ManyWorkersShareThePlaces) {
  std::vector<std::shared_ptr<RemoteTake>> takes;
  std::size_t places = 0;
  for (int i = 0; i < 500; ++i) {
    takes.push_back(remote_.beginTake({"ep", "w" + std::to_string(i)}, 1'000, false, caller_.call()));
    places += takes.back()->places.size();
  }
  EXPECT_EQ(takes.front()->places.size(), 1'000U) << "a few workers get all requested places";
  EXPECT_EQ(takes.back()->places.size(), RemoteWorkers::kSharedPlaces / 500);
  EXPECT_LT(places, 8 * RemoteWorkers::kSharedPlaces);
}

}  // namespace
}  // namespace jobq
