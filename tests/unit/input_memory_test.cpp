// Tests of the memory for the inputs of claimed jobs (core/workers/run/input_memory.h).
#include "core/workers/run/input_memory.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "dispatcher_fixture.h"
#include "jobq/lease_store.h"

namespace jobq {
namespace {

TEST(InputMemoryTest, AClaimNeedsRoomForTheLargestInput) {
  InputMemory memory;
  auto held = memory.hold("ep", InputMemory::kMost - InputMemory::kOfAClaim);
  EXPECT_TRUE(memory.reserveForClaim()) << "the last room is reserved and given back";
  const auto more = memory.hold("ep", kSmallInput + 1);
  EXPECT_FALSE(memory.reserveForClaim());
  held.release();
  EXPECT_TRUE(memory.reserveForClaim());
}

TEST(InputMemoryTest, ASmallInputIsNotCounted) {
  InputMemory memory;
  std::vector<InputMemory::Held> held;
  for (int i = 0; i < 100'000; ++i) held.push_back(memory.hold("ep", kSmallInput));
  EXPECT_FALSE(memory.hasUsedUp("ep"));
  EXPECT_TRUE(memory.reserveForClaim());
}

TEST(InputMemoryTest, AnEndpointHasAQuarter) {
  InputMemory memory;
  const auto held = memory.hold("ep", InputMemory::kOfEndpoint);
  EXPECT_TRUE(memory.hasUsedUp("ep"));
  EXPECT_FALSE(memory.hasUsedUp("other"));
  EXPECT_TRUE(memory.reserveForClaim());
}

/// Two workers, and a job with a large input before a job with a small one.
class ClaimedInputsTest : public DispatcherTest {
 protected:
  ClaimedInputsTest() { queueSignal_.addEndpoint("other"); }

  void submitInput(const EndpointId& endpoint, std::size_t bytes) {
    JobSpec job;
    job.id = endpoint + std::to_string(++submitted_);
    job.endpoint = endpoint;
    job.input = "{}" + std::string(bytes, ' ');
    (void)storage_->jobs().insert(std::move(job), ArrivalPolicy());
    queueSignal_.notify(endpoint, false);
  }
  void turn() {
    while (busy_.runPassIfDue()) continue;
  }
  std::vector<JobId> claimed() const {
    std::vector<JobId> ids;
    for (const ClaimedJob& job : executor_.jobs) ids.push_back(job.lease.job);
    return ids;
  }

  BusyExecutor executor_{running_};
  Dispatch busy_{
      *storage_, queueSignal_, executor_, running_,
      clock_,    log_,         "busy",    {endpoint(handlers_, "ep", 1, 1), endpoint(handlers_, "other", 1, 1)}};
};

TEST_F(ClaimedInputsTest, WithoutRoomALargeInputWaitsAndSmallInputsGoOn) {
  auto others = running_.inputs().hold("full", InputMemory::kMost);
  submitInput("ep", 100'000);
  submitInput("other", 1);
  turn();
  EXPECT_EQ(claimed(), std::vector<JobId>{"other2"});
  others.release();
  turn();
  EXPECT_EQ(claimed(), (std::vector<JobId>{"other2", "ep1"})) << "freed inputs wake the dispatcher";
}

TEST_F(ClaimedInputsTest, AnEndpointAtTheLimitDelaysNoOtherEndpoint) {
  auto own = running_.inputs().hold("ep", InputMemory::kOfEndpoint);
  submitInput("ep", 100'000);
  submitInput("other", 100'000);
  turn();
  EXPECT_EQ(claimed(), std::vector<JobId>{"other2"});
  own.release();
  turn();
  EXPECT_EQ(claimed(), (std::vector<JobId>{"other2", "ep1"}));
}

TEST_F(ClaimedInputsTest, AClaimWithoutRoomLeavesTheSignalsOfOtherEndpoints) {
  const auto others = running_.inputs().hold("full", InputMemory::kMost);
  submitInput("ep", 100'000);
  queueSignal_.notify("other", false);
  turn();
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_FALSE(queueSignal_.isSet("other")) << "the next job would not wake the dispatcher";
}

TEST_F(ClaimedInputsTest, AnExpiredIdleWorkerDoesNotCausePassAfterPass) {
  Dispatch scaled{*storage_, queueSignal_, executor_, running_,
                  clock_,    log_,         "scaled",  {endpoint(handlers_, "ep", 0, 1)}};
  const auto others = running_.inputs().hold("full", InputMemory::kMost);
  submitInput("ep", 100'000);
  const auto passes = [&] {
    int count = 0;
    while (count < 10 && scaled.runPassIfDue()) ++count;
    return count;
  };
  EXPECT_LT(passes(), 10);
  clock_.advance(Millis(60'000));
  EXPECT_LT(passes(), 10);
  EXPECT_EQ(claimed(), std::vector<JobId>{});
}

}  // namespace
}  // namespace jobq
