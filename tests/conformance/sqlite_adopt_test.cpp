// Tests of LeaseStore::adopt(): the jobs that remote workers have when the server starts again.
#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <vector>

#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

class AdoptTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    open();
  }
  LeaseRef claimFor(const JobId& id, const WorkerId& worker) {
    submit(id);
    return storage_->leases().claim(std::vector{ClaimWant{"ep", {worker}}}, holder_, 1).jobs.at(0).lease;
  }
  LeaseStore& leases() { return storage_->leases(); }
};

TEST_F(AdoptTest, TheNextLifeHoldsTheJobsOfWorkersOutlivingTheNode) {
  const LeaseRef remote = claimFor("remote", "w:1");
  const LeaseRef local = claimFor("local", "node-1");
  ASSERT_EQ(storage_->chunks().append(remote, 0, {{"1", "", false}}), ReportResult::accepted);
  open();
  const auto adopted = leases().adopt(holder_);
  ASSERT_EQ(adopted.size(), 1U);
  EXPECT_EQ(adopted[0].lease, remote);
  EXPECT_EQ(adopted[0].worker, "w:1");
  EXPECT_EQ(adopted[0].endpoint, "ep");
  EXPECT_TRUE(adopted[0].input.empty());
  EXPECT_TRUE(leases().adopt(holder_).empty()) << "a second call adopts no job";
  EXPECT_EQ(leases().sweep(10).stopped, std::vector{local});
  EXPECT_EQ(storage_->chunks().append(remote, 1, {{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(leases().finish(remote, Completed{"3"}), ReportResult::accepted);
  EXPECT_EQ(find("remote")->losses, 0U);
  EXPECT_EQ(storage_->chunks().read({"ep", "remote"}, 0, 100)->chunks.size(), 2U);
}

TEST_F(AdoptTest, ATimedOutJobIsLeftToTheSweep) {
  const LeaseRef remote = claimFor("remote", "w:1");
  clock_.advance(JobPolicy{}.executionTimeout + Millis(1));
  open();
  EXPECT_TRUE(leases().adopt(holder_).empty());
  EXPECT_EQ(leases().sweep(10).stopped, std::vector{remote});
  EXPECT_EQ(find("remote")->state, JobState::timedOut);
}

TEST_F(AdoptTest, AnEndedLifeAdoptsNoJob) {
  claimFor("remote", "w:1");
  const Holder former = holder_;
  open();
  EXPECT_TRUE(leases().adopt(former).empty());
  EXPECT_EQ(leases().adopt(holder_).size(), 1U);
}

TEST_F(AdoptTest, AnAdoptedJobIsLostWithItsNewLife) {
  const LeaseRef remote = claimFor("remote", "w:1");
  open();
  ASSERT_EQ(leases().adopt(holder_).size(), 1U);
  open();
  EXPECT_EQ(leases().sweep(10).stopped, std::vector{remote});
  EXPECT_EQ(find("remote")->losses, 1U);
}

}  // namespace
}  // namespace jobq::testkit
