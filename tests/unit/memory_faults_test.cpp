// Jobs when an allocation fails: a claim inside a report to the storage in memory is made whole or not at all
// (plugins/storage_memory/memory_leases.cpp), and an answer to a remote worker has all jobs or returns the jobs
// (core/http/api/worker/worker_calls.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/call_timer.h"
#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "core/http/api/worker/worker_calls.h"
#include "core/http/transport/budget.h"
#include "core/workers/remote/foreign_reports.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "remote_workers_fixture.h"
#include "tests/support/scarce_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

constexpr std::size_t kEnough = 1'000;  // allocations of a report

// A job IN_PROGRESS without a worker would end only with the timeout.
TEST(MemoryFaults, AReportWithoutMemoryLosesNoJob) {
#if JOBQ_SANITIZED_THREADS
  GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  std::size_t refused = 0;
  std::size_t emptyHanded = 0;
  for (std::size_t at = 1;; ++at) {
    ASSERT_LT(at, kEnough);
    test::UnitStorage storage;
    storage.insert("a");
    storage.insert("b");
    const ClaimedJob a = storage.claim();
    const auto state = [&](const char* id) { return storage.real->jobs().find({"ep", id})->state; };
    const EndedAttempt end{a.lease, Completed{"\"an output that is too long for the object itself\""}};
    const FusedClaim claim{{"ep", {"w0"}}, storage.life->holder(), 7};
    std::optional<FinishResult> done;
    test::failsIn = at;
    try {
      done = storage.real->leases().finish({&end, 1}, Durability::synced, claim);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    const bool failed = test::failsIn == 0;
    test::failsIn = 0;
    if (!done) {
      EXPECT_EQ(state("a"), JobState::inProgress) << "allocation " << at;
      EXPECT_EQ(state("b"), JobState::inQueue) << "allocation " << at;
      continue;
    }
    EXPECT_EQ(state("a"), JobState::completed) << "allocation " << at;
    ASSERT_EQ(state("b"), done->claimed.empty() ? JobState::inQueue : JobState::inProgress) << "allocation " << at;
    if (done->claimed.empty()) ++emptyHanded;
    if (!failed) break;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_GT(emptyHanded, 0U);
}

class JobTakeMemory : public test::RemoteWorkersFixture {
 protected:
  void SetUp() override {
#if JOBQ_SANITIZED_THREADS
    GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  }
  ~JobTakeMemory() override { caller_.setOwner(nullptr); }  // the connection ends before the server's objects

  /// Parks the worker's call for jobs, and gives the waiting jobs to the call.
  std::unique_ptr<PendingCall> callWithJobs() {
    RouteResult parked = awaitJobs(deps_, request_);
    for (const ClaimedJob& job : claimForPlaces()) remote_.assign(job);
    return std::get<std::unique_ptr<PendingCall>>(std::move(parked));
  }

  ForeignReports foreign_{{reports, *storage, remote_, storage.clock}};
  CallTimer lateCalls_{storage.clock, storage.log};
  Budget waiting_{10};
  Budget refused_{10};
  const WorkerDeps deps_{remote_, foreign_, lateCalls_, storage.clock, draining_, waiting_, refused_};
  ApiRequest request_;
};

TEST_F(JobTakeMemory, AnAnswerWithoutMemoryReturnsTheJobs) {
  auto served = std::make_shared<Endpoint>(*endpoint);
  served->spec.workersMax = 1;
  request_.params = {{"worker", "w"}};
  request_.query = {{"batch_size", "3"}};
  request_.endpoint = served;
  request_.client = &caller_;
  std::size_t refused = 0;
  for (std::size_t at = 1;; ++at) {
    ASSERT_LT(at, kEnough);
    const std::string id = "a job with an id that is too long for the object itself " + std::to_string(at);
    storage.insert(id);
    std::unique_ptr<PendingCall> call = callWithJobs();
    std::optional<ApiResponse> answer;
    test::failsIn = at;
    try {
      answer = call->poll(request_);
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    const bool failed = test::failsIn == 0;
    test::failsIn = 0;
    call.reset();
    const auto job = storage.real->jobs().find({"ep", id});
    ASSERT_EQ(job->state, answer ? JobState::inProgress : JobState::inQueue) << "allocation " << at;
    EXPECT_EQ(job->losses, 0U);
    EXPECT_EQ(findRun(id) != nullptr, answer.has_value()) << "allocation " << at;
    if (!failed) break;
    storage.real->jobs().remove("ep", 10);
  }
  EXPECT_GT(refused, 3U);
}

}  // namespace
}  // namespace jobq
