// Tests of the reports of remote workers without a socket (core/http/api/worker_reports.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/call_timer.h"
#include "core/base/output_quota.h"
#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "core/http/api/worker_calls.h"
#include "core/http/transport/budget.h"
#include "core/workers/attempt_reports.h"
#include "core/workers/chunk_split.h"
#include "core/workers/foreign_reports.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "remote_workers_fixture.h"

namespace jobq {
namespace {

class WorkerReportsTest : public test::RemoteWorkersFixture {
 protected:
  ~WorkerReportsTest() override { caller_.setOwner(nullptr); }  // the connection ends before the server's objects

  ApiRequest request(std::string body) {
    ApiRequest made;
    made.method = "POST";
    made.params = {{"worker", "w"}};
    made.body = std::move(body);
    made.endpoint = std::make_shared<Endpoint>(*endpoint);
    made.client = &caller_;
    return made;
  }
  /// Parks a call of the worker for jobs, and returns the number of its idle places.
  std::size_t park() {
    take_ = remote_.beginTake(key_, 1, true, caller_.call());
    return take_->places.size();
  }

  ForeignReports foreign_{{reports, *storage, remote_, storage.clock}};
  CallTimer lateCalls_{storage.clock, storage.log};
  Budget waiting_{10};
  Budget refused_{10};
  const WorkerDeps deps_{remote_, foreign_, lateCalls_, storage.clock, draining_, waiting_, refused_};
  std::shared_ptr<RemoteTake> take_;
};

// The caller of the job learns of its end, and may submit the next job at once. The storage fails, so the end of the
// run itself frees no place.
TEST_F(WorkerReportsTest, AWorkerThatLeavesGetsNoJobAlreadyBeforeItsResultIsStored) {
  const auto connection = connectWorker();
  (void)deliverJob("a");
  ASSERT_EQ(park(), 1U);
  storage.faults.failOperation("leases.finish");
  ApiRequest done = request(R"({"output":1,"stopPod":true})");
  done.params["job"] = "a";
  EXPECT_THROW((void)reportResult(deps_, done), StorageError);
  EXPECT_TRUE(take_->isOver);
  EXPECT_TRUE(claimForPlaces().empty());
  EXPECT_EQ(park(), 0U);
}

TEST_F(WorkerReportsTest, TheSameHoldsForABatch) {
  const auto connection = connectWorker();
  (void)deliverJob("a");
  ASSERT_EQ(park(), 1U);
  storage.faults.failOperation("leases.finishAll");
  ApiRequest done = request(R"([{"id":"a","output":1,"stopPod":true}])");
  EXPECT_THROW((void)reportResults(deps_, done), StorageError);
  EXPECT_TRUE(take_->isOver);
  EXPECT_EQ(park(), 0U);
}

// Pieces behind the numbers that the server has are new, although the chunk begins at an old number.
TEST_F(WorkerReportsTest, AChunkThatBeginsAtAnOldNumberIsCharged) {
  AttemptReports attempt(reports, *storage, "ep", {"gone", 1}, false);
  const std::string large = '"' + std::string(19UL << 20, 'x') + '"';
  std::uint64_t next = attempt.addChunkAt(0, "1", "");
  const auto sendAll = [&] {
    for (std::size_t sent = 0; sent <= OutputQuota::kMost; sent += large.size() / 2) {
      next = attempt.addChunkAt(next - 1, large, "");
    }
  };
  EXPECT_THROW(sendAll(), JobFailed);
}

// Another process has stored chunks of the attempt, and its numbers and bytes count here.
TEST_F(WorkerReportsTest, TheChunksOfAnEarlierProcessCount) {
  const RemoteRunPtr run = deliverJob("a");
  EXPECT_EQ(run->addChunkAt(0, "[1,2,3]", ""), 1U);
  AttemptReports later(reports, *storage, "ep", run->lease(), false);
  later.resumeChunks();
  EXPECT_EQ(later.addChunkAt(0, "[1,2,3]", ""), 1U) << "comes again";
  EXPECT_EQ(later.addChunk("2", ""), ReportResult::accepted);
  EXPECT_EQ(storage.real->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 2U);
}

// A chunk whose metrics leave no room for its output would be split into pieces of one byte.
TEST_F(WorkerReportsTest, TheMetricsOfAChunkThatComesAgainAreChecked) {
  const RemoteRunPtr run = deliverJob("a");
  EXPECT_EQ(run->addChunkAt(0, "1", ""), 1U);
  const std::string metrics = "{}" + std::string(kChunkLimit, ' ');
  EXPECT_THROW((void)run->addChunkAt(0, "[1,2]", metrics), JobFailed);
  EXPECT_THROW((void)run->addChunkAt(0, "[1", ""), JobFailed);
  EXPECT_EQ(run->addChunkAt(0, "1", "{}"), 1U) << "a chunk that comes again stays free";
}

}  // namespace
}  // namespace jobq
