// Tests of the number of rows that a write of the SQLite storage removes: no other write runs meanwhile
// (plugins/storage_sqlite/job_rows.h).
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sqlite_work.h"
#include "testkit/returned_jobs.h"

namespace jobq::testkit {
namespace {

constexpr std::int64_t kMostRows = 20'000;  // chunks and log lines of one write

class SqliteDiscardedChunks : public CountedSqliteTest {
 protected:
  /// Submits and claims a job whose attempt has so many chunks.
  LeaseRef run(const JobId& id, std::size_t chunks) {
    submit(id);
    const auto claimed = claim(1);
    EXPECT_EQ(claimed.size(), 1U);
    add(claimed.at(0).lease, 0, chunks);
    return claimed.at(0).lease;
  }
  void add(const LeaseRef& lease, std::uint64_t first, std::size_t chunks, const char* output = "1") {
    EXPECT_EQ(storage_->chunks().append(lease, first, std::vector<Chunk>(chunks, Chunk{output, "", false})),
              ReportResult::accepted);
  }
  std::string outputsOf(const JobId& id) {
    const auto page = storage_->chunks().read({"ep", id}, 0, 1'000);
    std::string outputs;
    for (const Chunk& chunk : page.value().chunks) outputs += chunk.output;
    return outputs;
  }
  std::int64_t chunkRows() { return ask(file(), "SELECT count(*) FROM job_chunk"); }
  std::int64_t lineRows() { return ask(file(), "SELECT count(*) FROM job_log"); }
  std::int64_t notes() { return ask(file(), "SELECT count(*) FROM number WHERE name LIKE 'discarded %'"); }

  /// Sweeps until no work is left. Returns the number of chunks behind each sweep.
  std::vector<std::int64_t> sweepAll() {
    std::vector<std::int64_t> rows;
    for (bool more = true; more && rows.size() < 10;) {
      more = storage_->leases().sweep(500).more;
      rows.push_back(chunkRows());
    }
    return rows;
  }
};

TEST_F(SqliteDiscardedChunks, GoInStepsAfterEachDiscardingCall) {
  using Steps = std::vector<std::int64_t>;
  LeaseRef lease = run("a", 50'000);
  const std::int64_t ofRelease =
      stepsOf([&] { EXPECT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 1U); });
  EXPECT_LT(ofRelease, 1'000) << "the call must not walk over the chunks";
  EXPECT_EQ(chunkRows(), 50'000);
  EXPECT_EQ(sweepAll(), (Steps{30'000, 10'000, 0}));
  EXPECT_EQ(notes(), 0);

  lease = claim(1).at(0).lease;
  add(lease, 0, 50'000);
  EXPECT_EQ(testkit::lose(storage_->leases(), std::vector{lease}).requeuedAt.size(), 1U);
  EXPECT_EQ(chunkRows(), 50'000);
  EXPECT_EQ(sweepAll(), (Steps{30'000, 10'000, 0}));

  lease = claim(1).at(0).lease;
  add(lease, 0, 50'000);
  EXPECT_EQ(storage_->leases().finish(lease, Failed{"no", ""}), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a"}, lease.attempt, policy_)));
  EXPECT_EQ(chunkRows(), 50'000);
  EXPECT_EQ(sweepAll(), (Steps{30'000, 10'000, 0}));

  lease = claim(1).at(0).lease;
  add(lease, 0, 50'000);
  holder_ = storage_->nodes().join("node");
  EXPECT_EQ(sweepAll(), (Steps{30'000, 10'000, 0})) << "a life has ended";

  lease = claim(1).at(0).lease;
  add(lease, 0, 50'000);
  clock_.advance(spec("a").policy.ttl);
  EXPECT_EQ(sweepAll(), (Steps{30'000, 10'000, 0})) << "the job has expired";
  EXPECT_EQ(notes(), 0);
}

TEST_F(SqliteDiscardedChunks, AWriteHasOneBoundForAllItsJobs) {
  std::vector<LeaseRef> leases;
  for (const char* id : {"a", "b", "c", "d"}) leases.push_back(run(id, 9'000));
  EXPECT_EQ(testkit::release(storage_->leases(), leases), 4U);
  EXPECT_EQ(chunkRows(), 18'000) << "a write removes the chunks of two jobs";
  EXPECT_EQ(notes(), 2);
  EXPECT_EQ(sweepAll(), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(notes(), 0);
}

TEST_F(SqliteDiscardedChunks, AreReplacedByNewChunks) {
  ASSERT_EQ(testkit::release(storage_->leases(), std::vector{run("a", 45'000)}), 1U);
  LeaseRef lease = claim(1).at(0).lease;
  add(lease, 0, 5, "2");
  EXPECT_EQ(outputsOf("a"), "22222");
  EXPECT_EQ(chunkRows(), 45'000);
  EXPECT_TRUE(storage_->leases().sweep(500).more);
  add(lease, 5, 2, "3");
  EXPECT_EQ(outputsOf("a"), "2222233");

  ASSERT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 1U)
      << "the release removes seven chunks beside the former chunks";
  EXPECT_EQ(chunkRows(), 24'993);
  lease = claim(1).at(0).lease;
  add(lease, 0, 30'000, "4");
  ASSERT_EQ(testkit::release(storage_->leases(), std::vector{lease}), 1U);
  EXPECT_EQ(sweepAll(), (std::vector<std::int64_t>{10'000, 0}));
  EXPECT_EQ(notes(), 0);
}

// The numbers of the jobs begin again behind the highest one of the file.
TEST_F(SqliteDiscardedChunks, AnotherJobWithTheNumberKeepsItsChunks) {
  ASSERT_EQ(testkit::release(storage_->leases(), std::vector{run("a", 45'000)}), 1U);
  const std::int64_t number = ask(file(), "SELECT num FROM job");
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), 1U);
  EXPECT_EQ(chunkRows(), 45'000);
  storage_.reset();
  open();
  const LeaseRef lease = run("b", 5);
  ASSERT_EQ(ask(file(), "SELECT num FROM job"), number);
  EXPECT_EQ(outputsOf("b"), "11111");
  EXPECT_EQ(sweepAll().back(), 5);
  EXPECT_EQ(notes(), 0);
  EXPECT_EQ(outputsOf("b"), "11111");
  EXPECT_EQ(storage_->leases().finish(lease, Completed{"1"}), ReportResult::accepted);
}

TEST_F(SqliteDiscardedChunks, OfARemovedEndpointAreLeftToTheSweeps) {
  (void)run("a", 45'000);
  EXPECT_LT(storage_->jobs().remove("ep", 10), 10U);
  EXPECT_EQ(chunkRows(), 45'000);
  EXPECT_EQ(sweepAll(), (std::vector<std::int64_t>{25'000, 5'000, 0}));
}

// A queued job may have the log of its former attempts.
TEST_F(SqliteDiscardedChunks, LogLinesHaveTheSameBound) {
  constexpr int kJobs = 30;
  constexpr auto kLines = static_cast<std::int64_t>(kMaxLogLines);
  const auto submitLogged = [this] {
    std::vector<LeaseRef> leases;
    for (int i = 0; i < kJobs; ++i) {
      leases.push_back(run("j" + std::to_string(i), 0));
      EXPECT_EQ(storage_->chunks().appendLog(leases.back(), 0, std::vector<LogLine>(kMaxLogLines)),
                ReportResult::accepted);
    }
    EXPECT_EQ(testkit::release(storage_->leases(), leases), static_cast<std::size_t>(kJobs));
    EXPECT_EQ(lineRows(), kJobs * kLines);
  };
  submitLogged();
  const int before = logFaults().syncs;
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), static_cast<std::size_t>(kJobs));
  EXPECT_GE(logFaults().syncs - before, 2) << "20 jobs a write";
  EXPECT_EQ(lineRows(), 0);

  submitLogged();
  clock_.advance(spec("j").policy.ttl);
  std::int64_t left = kJobs * kLines;
  for (bool more = true; more; left = lineRows()) {
    more = storage_->leases().sweep(500).more;
    EXPECT_LE(left - lineRows(), kMostRows);
  }
  EXPECT_EQ(left, 0);

  submitLogged();
  for (left = kJobs * kLines; left > 0; left = lineRows()) {
    (void)storage_->jobs().remove("ep", kJobs);
    ASSERT_LT(lineRows(), left);
    EXPECT_LE(left - lineRows(), kMostRows);
  }
}

}  // namespace
}  // namespace jobq::testkit
