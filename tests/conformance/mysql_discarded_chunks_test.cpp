// Tests of the number of rows that a transaction of the MySQL storage removes (plugins/storage_mysql/job_rows.h).
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "mysql_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

class MysqlDiscardedChunks : public MysqlTest {
 protected:
  void SetUp() override {
    node_ = open();
    holder_ = node_->nodes().join("node");
  }
  void TearDown() override { node_.reset(); }

  /// Claims the next job, whose attempt gets so many chunks.
  LeaseRef run(std::size_t chunks) {
    const auto claimed = node_->leases().claim(std::vector{ClaimWant{"ep", {"w"}}}, holder_, ++lastCall_).jobs;
    EXPECT_EQ(claimed.size(), 1U);
    EXPECT_EQ(node_->chunks().append(claimed.at(0).lease, 0, std::vector<Chunk>(chunks, Chunk{"1", "", false})),
              ReportResult::accepted);
    return claimed.at(0).lease;
  }
  void submit(const JobId& id) { (void)node_->jobs().insert(spec(id), policy_); }
  std::int64_t rows(const std::string& from) {
    return std::stoll(server().ask(database(), "SELECT COUNT(*) FROM " + from).at(0));
  }
  std::int64_t notes() { return rows("counted WHERE name LIKE 'discarded %'"); }

  /// Sweeps until no work is left. Returns the number of chunks behind each sweep.
  std::vector<std::int64_t> sweepAll(Storage& node) {
    std::vector<std::int64_t> left;
    for (bool more = true; more && left.size() < 10;) {
      more = node.leases().sweep(500).more;
      left.push_back(rows("job_chunk"));
    }
    return left;
  }

  std::unique_ptr<Storage> node_;
  Holder holder_;
  CallId lastCall_ = 0;
};

TEST_F(MysqlDiscardedChunks, GoInStepsOfAnyNode) {
  submit("a");
  EXPECT_EQ(testkit::release(node_->leases(), std::vector{run(45'000)}), 1U);
  EXPECT_EQ(rows("job_chunk"), 45'000);
  const auto other = open();
  EXPECT_EQ(sweepAll(*other), (std::vector<std::int64_t>{25'000, 5'000, 0}));
  EXPECT_EQ(notes(), 0);

  const LeaseRef lease = run(25'000);
  EXPECT_EQ(node_->leases().finish(lease, Failed{"no", ""}), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Requeued>(node_->jobs().requeue({"ep", "a"}, lease.attempt, policy_)));
  EXPECT_EQ(rows("job_chunk"), 25'000);
  (void)run(3);
  EXPECT_EQ(rows("job_chunk"), 25'000) << "new chunks replace discarded chunks";
  EXPECT_EQ(node_->jobs().summaries(std::vector{JobKey{"ep", "a"}}).at(0)->chunks, 3U);
  EXPECT_EQ(sweepAll(*node_), (std::vector<std::int64_t>{5'000, 3}));
  EXPECT_EQ(notes(), 0);
}

TEST_F(MysqlDiscardedChunks, ATransactionHasOneBoundForAllItsJobs) {
  std::vector<LeaseRef> leases;
  for (const char* id : {"a", "b", "c", "d"}) {
    submit(id);
    leases.push_back(run(9'000));
  }
  EXPECT_EQ(testkit::lose(node_->leases(), leases).requeuedAt.size(), 1U);
  EXPECT_EQ(rows("job_chunk"), 18'000) << "a transaction removes the chunks of two jobs";
  EXPECT_EQ(notes(), 2);
  EXPECT_EQ(node_->jobs().purgeQueued("ep"), 4U);
  EXPECT_EQ(rows("job_chunk"), 18'000);
  EXPECT_EQ(sweepAll(*node_), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(notes(), 0);
}

TEST_F(MysqlDiscardedChunks, LogLinesHaveTheSameBound) {
  constexpr int kJobs = 25;
  std::vector<LeaseRef> leases;
  for (int i = 0; i < kJobs; ++i) {
    submit("j" + std::to_string(i));
    leases.push_back(run(0));
    EXPECT_EQ(node_->chunks().appendLog(leases.back(), 0, std::vector<LogLine>(kMaxLogLines)), ReportResult::accepted);
  }
  clock_.advance(spec("j").policy.ttl);
  EXPECT_TRUE(node_->leases().sweep(500).more);
  EXPECT_EQ(rows("job_log"), 5'000);
  EXPECT_FALSE(node_->leases().sweep(500).more);
  EXPECT_EQ(rows("job_log"), 0);
}

}  // namespace
}  // namespace jobq::test
