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

  std::size_t release(std::span<const LeaseRef> leases) override {
    sizes.push_back(leases.size());
    return ForwardingLeases::release(leases);
  }

  std::vector<std::size_t> sizes;
  std::size_t failing = 0;  ///< number of the call that fails, from 1

 private:
  SweepResult doLose(std::span<const LeaseRef> leases) override {
    sizes.push_back(leases.size());
    if (sizes.size() == failing) throw StorageError("the disk of this test has failed");
    return inner_.lose(leases);
  }
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
  RunReports countedReports_{counted_, queueSignal_, watch_, deliveries_};
};

TEST_F(ReturnedJobsTest, EachCallOfTheStorageHasABoundedNumberOfJobs) {
  const std::vector<LeaseRef> leases = run(2 * kMostReturned + 1);
  countedReports_.release(leases, "ep");
  EXPECT_THAT(counted_.counted.sizes, ElementsAre(kMostReturned, kMostReturned, 1U));
  EXPECT_EQ(queued(), leases.size());
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(releaseAll(counted_.leases(), {}), 0U);
  EXPECT_EQ(counted_.counted.sizes.size(), 3U) << "no job, no call";
}

TEST_F(ReturnedJobsTest, AnInterruptedLossIsRepeated) {
  const std::vector<LeaseRef> leases = run(kMostReturned + 5);
  counted_.counted.failing = 2;
  EXPECT_THROW(countedReports_.lose(leases), StorageError);
  EXPECT_EQ(queued(), kMostReturned);
  EXPECT_TRUE(wasNotified()) << "the jobs of the first call can be claimed";
  countedReports_.lose(leases);
  EXPECT_THAT(counted_.counted.sizes, ElementsAre(kMostReturned, 5U, kMostReturned, 5U));
  EXPECT_EQ(queued(), leases.size());
  EXPECT_EQ(storage_->jobs().counts("ep").retried, leases.size()) << "each loss counts once";
}

}  // namespace
}  // namespace jobq
