// Tests of the reports of remote workers without a socket (core/http/api/worker/worker_reports.cpp).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/call_timer.h"
#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "core/http/api/worker/worker_calls.h"
#include "core/http/transport/budget.h"
#include "core/model/output_quota.h"
#include "core/workers/remote/foreign_reports.h"
#include "core/workers/run/attempt_reports.h"
#include "core/workers/run/chunk_split.h"
#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "remote_workers_fixture.h"
#include "testkit/forwarding_storage.h"

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

// The caller of the job learns of the end, and may submit the next job at once. The storage fails, so the end of the
// run frees no place.
TEST_F(WorkerReportsTest, ALeavingWorkerGetsNoJobEvenBeforeTheResultIsStored) {
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
  storage.faults.failOperation("leases.finish");
  ApiRequest done = request(R"([{"id":"a","output":1,"stopPod":true}])");
  EXPECT_THROW((void)reportResults(deps_, done), StorageError);
  EXPECT_TRUE(take_->isOver);
  EXPECT_EQ(park(), 0U);
}

// Pieces behind the numbers that the server has are new, although the chunk begins at an old number.
TEST_F(WorkerReportsTest, AChunkBeginningAtAnOldNumberIsCharged) {
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

// Another process has stored chunks of the attempt, and the stored numbers and bytes count here.
TEST_F(WorkerReportsTest, TheChunksOfAnEarlierProcessCount) {
  const RemoteRunPtr run = deliverJob("a");
  EXPECT_EQ(run->addChunkAt(0, "[1,2,3]", ""), 1U);
  AttemptReports later(reports, *storage, "ep", run->lease(), false);
  later.resumeChunks();
  EXPECT_EQ(later.addChunkAt(0, "[1,2,3]", ""), 1U) << "the chunk is a repetition";
  EXPECT_EQ(later.addChunk("2", ""), ReportResult::accepted);
  EXPECT_EQ(storage.real->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 2U);
}

/// A storage of several nodes. Each read returns one chunk of 1 MB, in the place of the small chunks stored by the
/// test.
class LargeChunks final : public testkit::ForwardingStorage, private ChunkStore {
 public:
  using ForwardingStorage::ForwardingStorage;

  std::optional<Millis> leaseLife() const noexcept override { return Millis(30'000); }
  ChunkStore& chunks() override { return *this; }
  std::size_t reads = 0;

 private:
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t) override {
    ++reads;
    auto page = inner_.chunks().read(key, offset, 1);
    for (Chunk& chunk : page->chunks) chunk.output.resize(1UL << 20);
    return page;
  }
  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override {
    return inner_.chunks().append(lease, first, std::move(chunks));
  }
  std::optional<ChunkPage> consume(const JobKey&, std::size_t, CallId) override { return std::nullopt; }
  ReportResult appendLog(const LeaseRef&, std::uint64_t, std::vector<LogLine>) override { return {}; }
  std::optional<LogPart> readLog(const JobKey&, const LogPosition&, std::uint64_t) override { return std::nullopt; }
};

// The reports of an attempt may reach any node, and the bound holds for the chunks of all.
TEST_F(WorkerReportsTest, TheChunksOfOtherNodesAreCharged) {
  constexpr std::size_t kTooMany = OutputQuota::kMost >> 20;
  const RemoteRunPtr run = deliverJob("a");
  LargeChunks shared(*storage);
  AttemptReports here(reports, shared, "ep", run->lease(), false);
  AttemptReports counting(reports, shared, "ep", run->lease(), false);
  EXPECT_EQ(here.addChunk("0", ""), ReportResult::accepted);
  EXPECT_EQ(counting.addChunkAt(1, "1", ""), 2U);
  for (std::size_t i = 2; i < kTooMany / 2; ++i) EXPECT_EQ(run->addChunkAt(i, "2", ""), i + 1);
  EXPECT_EQ(here.addChunk("3", ""), ReportResult::accepted);
  EXPECT_EQ(counting.addChunkAt(kTooMany / 2 + 1, "4", ""), kTooMany / 2 + 2);
  const std::size_t reads = shared.reads;
  EXPECT_EQ(counting.addChunkAt(kTooMany / 2 + 1, "4", ""), kTooMany / 2 + 2) << "the chunk is a repetition";
  EXPECT_EQ(shared.reads, reads) << "no chunk is charged twice";
  for (std::size_t i = kTooMany / 2 + 2; i < kTooMany + 2; ++i) EXPECT_EQ(run->addChunkAt(i, "5", ""), i + 1);
  EXPECT_THROW((void)here.addChunk("6", ""), JobFailed);
  EXPECT_THROW((void)counting.addChunkAt(kTooMany + 2, "6", ""), JobFailed);
}

// A chunk whose metrics leave no room for its output would be split into pieces of one byte.
TEST_F(WorkerReportsTest, TheMetricsOfARepeatedChunkAreChecked) {
  const RemoteRunPtr run = deliverJob("a");
  EXPECT_EQ(run->addChunkAt(0, "1", ""), 1U);
  const std::string metrics = "{}" + std::string(kChunkLimit, ' ');
  EXPECT_THROW((void)run->addChunkAt(0, "[1,2]", metrics), JobFailed);
  EXPECT_THROW((void)run->addChunkAt(0, "[1", ""), JobFailed);
  EXPECT_EQ(run->addChunkAt(0, "1", "{}"), 1U) << "a repeated chunk stays free";
}

}  // namespace
}  // namespace jobq
