// Tests of the return of many jobs to their queues, in calls of bounded length (core/jobs/returned_jobs.h).
#include "core/jobs/returned_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/jobs/run_reports.h"
#include "job_service_fixture.h"
#include "jobq/error.h"
#include "testkit/forwarding_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;

/// Keeps the number of jobs of each call.
class CountedLeases final : public testkit::ForwardingLeases {
 public:
  using ForwardingLeases::ForwardingLeases;

  SweepResult giveBack(std::span<const ReturnedJob> jobs) override {
    sizes.push_back(jobs.size());
    if (sizes.size() == failing) throw StorageError("the disk of this test has failed");
    return inner_.giveBack(jobs);
  }

  std::vector<std::size_t> sizes;
  std::size_t failing = 0;  ///< number of the call that fails, from 1
};

class CountedStorage final : public testkit::ForwardingStorage {
 public:
  explicit CountedStorage(Storage& inner) : ForwardingStorage(inner), counted(inner.leases()) {}
  LeaseStore& leases() override { return counted; }

  CountedLeases counted;
};

class ReturnedJobsTest : public JobServiceTest {
 protected:
  /// Returns the leases of so many new running jobs.
  std::vector<LeaseRef> run(std::size_t jobs) {
    std::vector<LeaseRef> leases;
    for (std::size_t i = 0; i < jobs; ++i) {
      storage_.insert("j" + std::to_string(i));
      leases.push_back(claim());
    }
    return leases;
  }
  std::uint64_t queued() { return storage_->jobs().counts("ep").inQueue; }

  CountedStorage counted_{*storage_};
  RunReports countedReports_{counted_, queueSignal_, claimer_, watch_, deliveries_};
};

TEST_F(ReturnedJobsTest, EachCallOfTheStorageHasABoundedNumberOfJobs) {
  const std::vector<LeaseRef> leases = run(2 * kMostReturned + 1);
  countedReports_.giveBack(leases, false);
  EXPECT_THAT(counted_.counted.sizes, ElementsAre(kMostReturned, kMostReturned, 1U));
  EXPECT_EQ(queued(), leases.size());
  EXPECT_TRUE(wasNotified());
  releaseAll(counted_.leases(), {});
  EXPECT_EQ(counted_.counted.sizes.size(), 3U) << "no job, no call";
}

TEST_F(ReturnedJobsTest, AnInterruptedLossIsRepeated) {
  const std::vector<LeaseRef> leases = run(kMostReturned + 5);
  counted_.counted.failing = 2;
  EXPECT_THROW(countedReports_.giveBack(leases, true), StorageError);
  EXPECT_EQ(queued(), kMostReturned);
  EXPECT_TRUE(wasNotified()) << "the jobs of the first call can be claimed";
  countedReports_.giveBack(leases, true);
  EXPECT_THAT(counted_.counted.sizes, ElementsAre(kMostReturned, 5U, kMostReturned, 5U));
  EXPECT_EQ(queued(), leases.size());
  EXPECT_EQ(storage_->jobs().counts("ep").retried, leases.size()) << "each loss counts once";
}

}  // namespace
}  // namespace jobq
