// The SQLite storage when an allocation fails: each step happens whole or not at all, and after an irrevocable commit
// no failed allocation ends the process.
#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "open_sqlite.h"
#include "plugins/storage_sqlite/reads/job_listing.h"
#include "sqlite_bodies_fixture.h"
#include "tests/support/scarce_memory.h"

namespace jobq::testkit {
namespace {

constexpr std::size_t kEnough = 1'000;  // allocations of a step
constexpr std::size_t kFew = 8;         // a step with a commit on the test's thread needs more

class SqliteMemoryFaults : public SqliteBodiesTest {
 protected:
  void SetUp() override {
#if JOBQ_SANITIZED_THREADS
    GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
    SqliteBodiesTest::SetUp();
    open();
    // After some lone writes, the test's thread commits its writes without the writer's thread.
    for (int i = 0; i <= sqlite::WriteTurns::kLoneTurns; ++i) submit("lone" + std::to_string(i));
  }

  /// Runs the step with an allocation that fails: the first of the thread, then the second, and so on until two runs in
  /// a row need no further allocation. Before each run `prepare(run)` is called, afterwards `check(run, threw)`.
  template <class Prepare, class Step, class Check>
  void withEachAllocationFailing(Prepare&& prepare, Step&& step, Check&& check) {
    std::size_t refused = 0;
    std::size_t at = 1;
    for (int succeeded = 0; succeeded < 2; ++at) {
      ASSERT_LT(at, kEnough);
      const std::string run = std::to_string(at);
      prepare(run);
      bool threw = false;
      test::failsIn = at;
      try {
        step(run);
      } catch (const std::exception&) {
        threw = true;
      }
      const bool failed = test::failsIn == 0;
      test::failsIn = 0;
      check(run, threw);
      if (testing::Test::HasFailure()) FAIL() << "allocation " << at;
      if (threw) ++refused;
      succeeded = failed ? 0 : succeeded + 1;
    }
    EXPECT_GT(refused, 0U);
    EXPECT_GT(at, kFew) << "the writer's thread has made the commits";
  }

  std::optional<JobState> stateOf(const EndpointId& endpoint, const JobId& id) {
    const auto job = storage_->jobs().find({endpoint, id});
    return job ? std::optional(job->state) : std::nullopt;
  }

  /// Ends the job `a` of each run and claims the job `b` of the run with an input of `inputBytes` bytes, with or
  /// without a sync.
  void endAndClaim(bool isSynced, std::size_t inputBytes) {
    std::optional<LeaseRef> a;
    std::optional<FinishResult> done;
    const auto prepare = [&](const std::string& run) {
      done.reset();
      for (const char* id : {"a", "b"}) {
        JobSpec job = spec(id + run);
        job.endpoint = "ep" + run;
        if (*id == 'b') job.input = bodyOf(inputBytes);
        submit(std::move(job));
      }
      a = storage_->leases().claim(std::vector{ClaimWant{"ep" + run, {"w0"}}}, holder_, ++calls_).jobs.at(0).lease;
    };
    const auto step = [&](const std::string& run) {
      const ClaimWant want{"ep" + run, {"w0"}};
      const EndedAttempt end{*a, Completed{"\"an output that is too long for the object itself\""}};
      done = storage_->leases().finish({&end, 1}, isSynced ? Durability::synced : Durability::unsynced,
                                       FusedClaim{want, holder_, ++calls_});
    };
    const auto check = [&](const std::string& run, bool threw) {
      const EndpointId endpoint = "ep" + run;
      EXPECT_EQ(stateOf(endpoint, "a" + run), threw ? JobState::inProgress : JobState::completed);
      clock_.advance(Millis(1'000));
      if (done && done->claimed.empty()) (void)storage_->leases().sweep(100);  // returns a job that was left out
      const bool isClaimed = done && !done->claimed.empty();
      EXPECT_EQ(stateOf(endpoint, "b" + run), isClaimed ? JobState::inProgress : JobState::inQueue);
      const EndpointCounts counts = storage_->jobs().counts(endpoint);
      EXPECT_EQ(counts.inProgress, threw || isClaimed ? 1U : 0U);
    };
    withEachAllocationFailing(prepare, step, check);
  }

  CallId calls_ = 0;
};

TEST_F(SqliteMemoryFaults, AClaimingEndLosesNoJob) { endAndClaim(true, 10); }

TEST_F(SqliteMemoryFaults, AnUnsyncedClaimingEndLosesNoJob) { endAndClaim(false, 10); }

// The input is read behind the commit of the claim.
TEST_F(SqliteMemoryFaults, AClaimedJobWithoutMemoryForTheInputIsLeftOut) { endAndClaim(false, kLargeBody); }

TEST_F(SqliteMemoryFaults, TheFirstJobOfAnEndpointIsStoredOrNot) {
  JobSpec job;
  const auto prepare = [&](const std::string& run) {
    job = spec("an id that is too long for the object itself " + run);
    job.endpoint = "an endpoint that is too long for the object itself " + run;
  };
  const auto insert = [&](const std::string&) { (void)storage_->jobs().insert(std::move(job), policy_); };
  const auto check = [&](const std::string& run, bool threw) {
    const EndpointId endpoint = "an endpoint that is too long for the object itself " + run;
    EXPECT_EQ(stateOf(endpoint, "an id that is too long for the object itself " + run).has_value(), !threw);
    EXPECT_EQ(storage_->jobs().counts(endpoint).inQueue, threw ? 0U : 1U);
  };
  withEachAllocationFailing(prepare, insert, check);
}

TEST_F(SqliteMemoryFaults, AClaimGivesItsJobOrLeavesTheJob) {
  std::vector<ClaimWant> wants;
  std::vector<ClaimedJob> claimed;
  const auto prepare = [&](const std::string& run) {
    JobSpec job = spec("a" + run);
    job.endpoint = "ep" + run;
    submit(std::move(job));
    wants = {{"ep" + run, {"a worker with a name that is too long for the object itself"}}};
    claimed.clear();
  };
  const auto claim = [&](const std::string&) { claimed = storage_->leases().claim(wants, holder_, ++calls_).jobs; };
  const auto check = [&](const std::string& run, bool threw) {
    EXPECT_EQ(claimed.size(), threw ? 0U : 1U);
    EXPECT_EQ(stateOf("ep" + run, "a" + run), threw ? JobState::inQueue : JobState::inProgress);
  };
  withEachAllocationFailing(prepare, claim, check);
}

TEST_F(SqliteMemoryFaults, AClaimingInsertHappensOrNot) {
  JobSpec job;
  ClaimWant want;
  std::size_t claimed = 0;
  const auto prepare = [&](const std::string& run) {
    job = spec("a" + run);
    job.endpoint = "ep" + run;
    want = {"ep" + run, {"a worker with a name that is too long for the object itself"}};
    claimed = 0;
  };
  const auto insert = [&](const std::string&) {
    const auto done = storage_->insertAndClaim(std::move(job), policy_, std::nullopt, {want, holder_, ++calls_});
    claimed = done.claimed.size();
  };
  const auto check = [&](const std::string& run, bool threw) {
    EXPECT_EQ(claimed, threw ? 0U : 1U);
    EXPECT_EQ(stateOf("ep" + run, "a" + run), threw ? std::nullopt : std::optional(JobState::inProgress));
  };
  withEachAllocationFailing(prepare, insert, check);
}

// A step lists all jobs, and a later one of the same group adds a job.
TEST_F(SqliteMemoryFaults, AListingBeforeANewJobOfTheGroupNeedsNoMemoryAfterTheCommit) {
  storage_.reset();
  OpenSqlite sqlite(file(), clock_, log_);
  sqlite::ListingChange change(sqlite.numbers);
  change.add("listed", sqlite.numbers.next());
  change.listAll(sqlite.connection);
  const auto number = sqlite.numbers.next();
  change.add("unlisted", number);
  change.publishIds();
  test::failsIn = 1;
  change.apply();
  const bool failed = test::failsIn == 0;
  test::failsIn = 0;
  EXPECT_FALSE(failed);
  EXPECT_EQ(sqlite.numbers.locate("listed").unlisted, std::nullopt);
  EXPECT_EQ(sqlite.numbers.locate("unlisted").unlisted, number);
}

}  // namespace
}  // namespace jobq::testkit
