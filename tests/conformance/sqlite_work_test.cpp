// Tests of the cost of calls of the SQLite storage, in steps of SQLite's virtual machine: the cost must not depend on
// the number of stored rows.
#include "sqlite_work.h"

namespace jobq::testkit {
namespace {

class SqliteWorkTest : public CountedSqliteTest {
 protected:
  /// Stores and cancels a job with a webhook. Returns the steps of settling its delivery.
  std::int64_t stepsOfADelivery() {
    const JobId id = "hooked" + std::to_string(++deliveries_);
    JobSpec job = spec(id);
    job.webhook = "http://example.com/";
    submit(std::move(job));
    (void)storage_->jobs().cancel({"ep", id});
    clock_.advance(Millis(1));
    return stepsOf([&] {
      EXPECT_TRUE(storage_->outbox().finishDelivery({id + ".0", 0}, DeliveryState::delivered)) << id;
    });
  }

 private:
  int deliveries_ = 0;
};

TEST_F(SqliteWorkTest, ADeliveryDoesNotCountKeptDeliveries) {
  constexpr int kBound = static_cast<int>(kMaxDeliveriesPerEndpoint);
  for (int i = 1; i < 10; ++i) stepsOfADelivery();
  const std::int64_t ofFew = stepsOfADelivery();
  for (int i = 11; i < kBound; ++i) stepsOfADelivery();
  EXPECT_EQ(stepsOfADelivery(), ofFew) << "the last delivery within the bound costs no more";

  const std::int64_t ofFirstBeyond = stepsOfADelivery();
  EXPECT_LE(ofFirstBeyond, 5 * ofFew) << "a delivery beyond the bound removes a single row with the attempts";
  for (int i = 0; i < 50; ++i) EXPECT_EQ(stepsOfADelivery(), ofFirstBeyond);
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), kMaxDeliveriesPerEndpoint);
}

TEST_F(SqliteWorkTest, ReplaysAndOldAgeMakeRoomForDeliveries) {
  constexpr int kBound = static_cast<int>(kMaxDeliveriesPerEndpoint);
  for (int i = 0; i < kBound; ++i) stepsOfADelivery();
  EXPECT_TRUE(storage_->outbox().replay("hooked500.0"));
  stepsOfADelivery();
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), kMaxDeliveriesPerEndpoint + 1)
      << "an owed delivery does not count";

  clock_.advance(kDeliveryRecordLife);
  while (storage_->leases().sweep(100).more) continue;
  stepsOfADelivery();
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), 2U) << "the owed and the newest delivery are left";
  for (int i = 1; i < kBound; ++i) stepsOfADelivery();
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), kMaxDeliveriesPerEndpoint + 1);
}

TEST_F(SqliteWorkTest, AnswersAboutJobsDeepInTheQueueShareItsBound) {
  constexpr std::size_t kMost = 100;
  for (int i = 0; i < 300; ++i) submit("j" + std::to_string(i));
  const auto ahead = [&](const JobId& id) { return storage_->leases().ahead({"ep", id}, kMost); };
  const std::int64_t first = stepsOf([&] { EXPECT_EQ(ahead("j299"), kMost); });
  const std::int64_t next = stepsOf([&] { EXPECT_EQ(ahead("j150"), kMost); });
  EXPECT_LT(next * 5, first) << "only the job's own place is read";
  EXPECT_EQ(ahead("j100"), kMost);
  EXPECT_EQ(ahead("j99"), 99U) << "each job within the bound is counted";

  EXPECT_EQ(claim(200).size(), 200U);
  EXPECT_EQ(ahead("j200"), kMost) << "known for a second";
  clock_.advance(Millis(1'000));
  EXPECT_EQ(ahead("j200"), 0U);
  EXPECT_EQ(ahead("j299"), 99U) << "fewer than the bound wait";
}

// The bound is a position in the order of claims, with any ranks of a policy. In this test, later jobs are claimed
// earlier.
TEST_F(SqliteWorkTest, TheBoundOfALineFollowsTheQueuePolicy) {
  struct Backwards final : QueuePolicy {
    std::string group(const JobSpec&) const override { return {}; }
    std::int64_t rank(const JobSpec& job, Instant, const GroupState&) const override { return -job.policy.priority; }
  };
  const Backwards policy;
  for (int i = 0; i < 20; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.policy.priority = i;
    EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(std::move(job), policy)));
  }
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  low.policy.priority = 100;
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(std::move(low), policy)));
  const auto ahead = [&](const JobId& id) { return storage_->leases().ahead({"ep", id}, 5); };
  EXPECT_EQ(ahead("j0"), 5U);
  EXPECT_EQ(ahead("low"), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(ahead("j" + std::to_string(19 - i)), i);
  EXPECT_EQ(ahead("j14"), 5U);
}

// A file of a former version with more rows than the bound is reduced by a few rows at a time.
TEST_F(SqliteWorkTest, AnOlderFilesDeliveriesAreCountedAtItsMigration) {
  for (int i = 0; i < 20; ++i) stepsOfADelivery();
  storage_.reset();
  const std::string more =
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1000) "
      "INSERT INTO delivery SELECT 1000 + x, 'old' || x || '.0', endpoint, 'old' || x, state, due_at, settled_at - 1, "
      "url, "
      "job_state, "
      "attempt, losses, retries, low, submitted_at, queued_at, started_at, finished_at, expires_at, worker, error "
      "FROM delivery JOIN n WHERE num = 1;";
  runScript(file(), (std::string(kBackToTheFirstVersion) + more).c_str());
  open();
  clock_.advance(Millis(1));
  stepsOfADelivery();
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), 1'021U - 16U)
      << "old rows count, and a few are removed at once";
  stepsOfADelivery();
  EXPECT_EQ(storage_->outbox().list("ep", "", 5'000).size(), kMaxDeliveriesPerEndpoint);
}

}  // namespace
}  // namespace jobq::testkit
