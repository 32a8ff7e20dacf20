// Tests of the late entries of new jobs in the indexes for lists and expiry
// (plugins/storage_sqlite/reads/job_listing.h): the storage shows the same, whether a job is listed or not.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "plugins/storage_sqlite/reads/job_listing.h"
#include "sqlite_fixture.h"
#include "testkit/run_together.h"

namespace jobq::testkit {
namespace {

constexpr int kMany = static_cast<int>(sqlite::kMostUnlisted);

class ListingTest : public SqliteTest {
 protected:
  static JobId idOf(int number) { return "job" + std::to_string(number); }

  /// Submits the jobs from number `first` on.
  void submitMany(int first, int jobs) {
    for (int number = first; number < first + jobs; ++number) submit(idOf(number));
  }
  /// Claims the oldest job and finishes or fails it.
  void endOne(bool fails = false) {
    const auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    const Outcome outcome = fails ? Outcome(Failed{"no", ""}) : Outcome(Completed{"1"});
    ASSERT_EQ(storage_->leases().finish(claimed[0].lease, outcome), ReportResult::accepted);
  }
  void requeue(const JobId& id) {
    ASSERT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", id}, 1, policy_)));
  }
  std::int64_t number(const char* sql) const { return ask(file(), sql); }
  std::int64_t unlisted() const { return number("SELECT count(*) FROM job WHERE listed = 0"); }
  void reopen() {
    storage_.reset();
    open();
  }

  /// Returns the ids of a list, read in pages of `limit` jobs with cursors.
  std::vector<JobId> pages(std::optional<JobState> state, std::size_t limit) {
    std::vector<JobId> ids;
    PageWindow window{0, limit, 0};
    do {
      const JobPage page = storage_->jobs().list({"ep", state}, window);
      EXPECT_LE(page.jobs.size(), limit);
      for (const Job& job : page.jobs) ids.push_back(job.id);
      window.cursor = page.next;
    } while (window.cursor != 0);
    return ids;
  }
  /// Compares the list with `expected`, in whole, in pages with cursors and in pages with offsets.
  void expectList(std::optional<JobState> state, const std::vector<JobId>& expected, const char* when) {
    const JobPage whole = storage_->jobs().list({"ep", state}, {0, 10'000, 0});
    EXPECT_EQ(whole.total, expected.size()) << when;
    std::vector<JobId> ids;
    for (const Job& job : whole.jobs) ids.push_back(job.id);
    EXPECT_EQ(ids, expected) << when;
    EXPECT_EQ(pages(state, 7), expected) << when;
    ids.clear();
    for (std::size_t offset = 0; offset < expected.size(); offset += 50) {
      for (const Job& job : storage_->jobs().list({"ep", state}, {offset, 50, 0}).jobs) ids.push_back(job.id);
    }
    EXPECT_EQ(ids, expected) << when;
  }
};

TEST_F(ListingTest, NewJobsAreListedTogether) {
  open();
  submitMany(0, kMany - 1);
  EXPECT_EQ(unlisted(), kMany - 1);
  submit(idOf(kMany - 1));
  EXPECT_EQ(unlisted(), 0);
  submitMany(kMany, 3);
  EXPECT_EQ(unlisted(), 3);
  reopen();
  EXPECT_EQ(unlisted(), 0) << "a start lists all jobs";
  submitMany(kMany + 3, kMany - 1);
  EXPECT_EQ(unlisted(), kMany - 1);
}

TEST_F(ListingTest, AListHasTheListedAndTheOtherJobsInTheirOrder) {
  open();
  std::vector<JobId> all;
  std::vector<JobId> completed;
  std::vector<JobId> failed;
  std::vector<JobId> cancelled;
  std::vector<JobId> queued;
  const auto check = [&](const char* when) {
    expectList(std::nullopt, all, when);
    expectList(JobState::completed, completed, when);
    expectList(JobState::failed, failed, when);
    expectList(JobState::cancelled, cancelled, when);
    expectList(JobState::inQueue, queued, when);
  };
  // Two thirds of the jobs are listed in the end, and some of them end only afterwards.
  for (int number = 0; number < kMany * 3 / 2; ++number) {
    const JobId id = idOf(number);
    submit(id);
    all.insert(all.begin(), id);
    if (number % 5 == 1) {
      (void)storage_->jobs().cancel({"ep", id});
      cancelled.insert(cancelled.begin(), id);
    } else if (number % 5 == 0) {
      endOne(true);
      failed.insert(failed.begin(), id);
    } else {
      if (number % 5 == 4) {  // is retried
        endOne(true);
        requeue(id);
      }
      endOne();
      completed.insert(completed.begin(), id);
    }
    if (number == kMany - 2) check("before the first listing");
  }
  const int ended = kMany * 3 / 2;
  for (int number = ended; number < ended + 40; ++number) {
    submit(idOf(number));
    all.insert(all.begin(), idOf(number));
    queued.insert(queued.begin(), idOf(number));
  }
  EXPECT_GT(unlisted(), 40);
  EXPECT_LT(unlisted(), kMany);
  check("with listed and other jobs");
  endOne();
  completed.insert(completed.begin(), queued.back());
  queued.pop_back();
  check("behind an end");
  requeue(idOf(0));  // a listed job
  failed.pop_back();
  queued.push_back(idOf(0));
  check("behind a retry");
  reopen();
  check("all listed");
}

TEST_F(ListingTest, AnExpiredJobIsAbsentAndGoesWithTheNextSweep) {
  open();
  submitMany(0, kMany);
  for (int i = 0; i < 10; ++i) endOne();
  JobSpec brief = spec("brief");
  brief.policy.ttl = Millis(1'000);
  submit(brief);
  submit("stays");
  clock_.advance(Millis(1'000));
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, static_cast<std::uint64_t>(kMany) - 10 + 1);
  EXPECT_EQ(storage_->jobs().list({"ep", JobState::inQueue}, {}).total, static_cast<std::size_t>(kMany) - 10 + 1);
  EXPECT_EQ(unlisted(), 2);
  const SweepResult swept = storage_->leases().sweep(100);
  EXPECT_EQ(swept.removed, 1U);
  ASSERT_EQ(swept.expired.size(), 1U);
  EXPECT_EQ(swept.expired[0].id, "brief");
  EXPECT_FALSE(swept.more);
  EXPECT_EQ(unlisted(), 1);
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, static_cast<std::uint64_t>(kMany) - 10 + 1);
  clock_.advance(Millis(30L * 86'400'000));
  submit("last");
  clock_.advance(Millis(30L * 86'400'000));
  const SweepResult first = storage_->leases().sweep(100);
  EXPECT_EQ(first.removed, 100U) << "the job is removed with the other expired jobs";
  EXPECT_TRUE(first.more);
  while (storage_->leases().sweep(100).more) continue;
  EXPECT_EQ(number("SELECT count(*) FROM job"), 0);
}

TEST_F(ListingTest, ASweepOfUnlistedJobsIsBounded) {
  open();
  submitMany(0, 25);
  clock_.advance(Millis(30L * 86'400'000));
  for (const std::uint64_t removed : {10U, 10U, 5U}) {
    const SweepResult swept = storage_->leases().sweep(10);
    EXPECT_EQ(swept.removed, removed);
    EXPECT_EQ(swept.more, removed == 10);
  }
}

TEST_F(ListingTest, AnEndpointIsRemovedWithAllItsJobs) {
  open();
  submitMany(0, kMany + 20);
  JobSpec other = spec("other");
  other.endpoint = "elsewhere";
  submit(other);
  EXPECT_EQ(storage_->jobs().remove("ep", 1'000), static_cast<std::size_t>(kMany) + 20);
  EXPECT_EQ(number("SELECT count(*) FROM job"), 1);
  EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).total, 0U);
  EXPECT_TRUE(storage_->jobs().find({"elsewhere", "other"}));
}

TEST_F(ListingTest, AFullDiskListsNoJob) {
  open();
  submitMany(0, kMany - 1);
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_FALSE(submitted("lost"));
  logFaults().reset();
  EXPECT_EQ(unlisted(), kMany - 1);
  EXPECT_FALSE(find("lost"));
  EXPECT_EQ(pages(std::nullopt, 50).size(), static_cast<std::size_t>(kMany) - 1);
  EXPECT_TRUE(submitted("lost")) << "the id is free";
  EXPECT_EQ(pages(std::nullopt, 50).size(), static_cast<std::size_t>(kMany));
}

// A listing needs pages for hundreds of jobs, and must not keep a small write out.
TEST_F(ListingTest, AWriteWithRoomIsStoredWithoutTheListing) {
  open();
  submitMany(0, kMany - 1);
  logFaults().writeAnswers = SQLITE_FULL;
  logFaults().failsOnce = true;  // the group with the listing, and not its repetition
  submit("stored");
  logFaults().reset();
  EXPECT_EQ(unlisted(), kMany);
  EXPECT_TRUE(find("stored"));
  submit("behind");
  EXPECT_EQ(unlisted(), kMany + 1) << "the next listing is tried later";
  EXPECT_EQ(pages(std::nullopt, 50).size(), static_cast<std::size_t>(kMany) + 1);
  reopen();
  EXPECT_EQ(unlisted(), 0);
}

TEST_F(ListingTest, AJobIsFoundByItsIdAtAnyTime) {
  open();
  for (int number = 0; number < kMany + 10; ++number) {
    submit(idOf(number));
    for (const int other : {0, number / 2, number}) EXPECT_TRUE(find(idOf(other))) << other << " of " << number;
  }
  EXPECT_FALSE(find(idOf(kMany + 10)));
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, static_cast<std::uint64_t>(kMany) + 10);
  reopen();
  EXPECT_TRUE(find(idOf(0)));
  EXPECT_TRUE(find(idOf(kMany + 9)));
}

TEST_F(ListingTest, AnIdIsRefusedAsLongAsItsJobIsThere) {
  open();
  submitMany(0, kMany + 1);
  const Outcome outcome = Completed{"1"};
  const InsertTerms run{.start = Begun{"w", holder_, Millis(0), &outcome}};
  for (const int number : {0, kMany}) {  // a listed job and an unlisted job
    JobSpec job = spec(idOf(number));
    EXPECT_TRUE(submitted(job.id)) << "the call is repeated";
    EXPECT_THROW((void)storage_->jobs().insert(JobSpec(job), policy_, run), StorageError);
    job.input = "2";
    EXPECT_THROW((void)storage_->jobs().insert(std::move(job), policy_), StorageError);
  }
  EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).total, static_cast<std::size_t>(kMany) + 1);
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), static_cast<std::size_t>(kMany) + 1);
  for (const int number : {0, kMany}) {
    EXPECT_FALSE(find(idOf(number)));
    (void)storage_->jobs().insert(spec(idOf(number)), policy_, run);
    EXPECT_EQ(find(idOf(number))->state, JobState::completed);
    EXPECT_EQ(find(idOf(number))->state, JobState::completed) << "the next read finds the state in the file";
  }
}

// The place of a job in memory goes when the index has the entry; a read must find the place or the entry.
TEST_F(ListingTest, AJobIsFoundBesideListings) {
  open();
  constexpr int kJobs = kMany * 6;
  std::atomic<int> stored = 0;
  std::atomic<int> finds = 0;
  std::thread writer([&] {
    for (int number = 0; number < kJobs; ++number) {
      if (number == kJobs - 1) waitFor("two reads beside the writer", [&] { return finds > 1 || HasFailure(); });
      submit(idOf(number));
      stored = number + 1;
    }
  });
  for (int number = 0; number < kJobs && !HasFailure();) {
    number = stored;
    for (const int age : {1, 3, kMany / 2, kMany}) EXPECT_TRUE(number < age || find(idOf(number - age))) << age;
    ++finds;
  }
  join("the writer", writer);
}

// The reader takes the bound of the listed jobs before its snapshot; a listing meanwhile must neither hide a job nor
// show a job twice.
TEST_F(ListingTest, AListBesideListingsIsWhole) {
  open();
  constexpr int kJobs = kMany * 6;
  std::atomic<int> stored = 0;
  std::atomic<bool> isOver = false;
  std::atomic<int> lists = 0;
  std::thread writer([&] {
    for (int number = 0; number < kJobs; ++number) {
      if (number == kJobs - 1) waitFor("two reads beside the writer", [&] { return lists > 1 || HasFailure(); });
      submit(idOf(number));
      stored = number + 1;
    }
    isOver = true;
  });
  do {
    const int before = stored;
    const JobPage page = storage_->jobs().list({"ep", std::nullopt}, {0, kJobs, 0});
    const auto shown = static_cast<int>(page.jobs.size());
    EXPECT_GE(shown, before);
    for (int i = 0; i < shown; ++i) EXPECT_EQ(page.jobs[static_cast<std::size_t>(i)].id, idOf(shown - 1 - i));
    EXPECT_EQ(storage_->jobs().counts("ep").completed, 0U);
    ++lists;
  } while (!isOver && !HasFailure());
  join("the writer", writer);
}

// The row of an endpoint counts only the jobs that are gone.
TEST_F(ListingTest, TheTotalsOfAnEndpointCountEachOutcomeOnce) {
  open();
  const auto expect = [this](std::uint64_t completed, std::uint64_t failed, std::uint64_t retried, const char* when) {
    for (int opening = 0; opening < 2; ++opening) {
      const EndpointCounts counts = storage_->jobs().counts("ep");
      EXPECT_EQ(counts.completed, completed) << when;
      EXPECT_EQ(counts.failed, failed) << when;
      EXPECT_EQ(counts.retried, retried) << when;
      reopen();
    }
  };
  submitMany(0, 3);
  endOne();
  endOne(true);
  expect(1, 1, 0, "two ends");
  EXPECT_EQ(number("SELECT count(*) FROM endpoint_count"), 0) << "an end writes no row of the endpoint";
  requeue(idOf(1));
  expect(1, 1, 1, "a retry");
  EXPECT_EQ(number("SELECT failed FROM endpoint_count"), 1);
  JobSpec slow = spec("slow");
  slow.policy.executionTimeout = Millis(5'000);
  submit(slow);
  for (int i = 0; i < 2; ++i) endOne();
  ASSERT_EQ(claim(1).size(), 1U);
  clock_.advance(Millis(5'000));
  (void)storage_->leases().sweep(100);
  expect(3, 2, 1, "a timeout");
  clock_.advance(Millis(30L * 86'400'000));
  EXPECT_EQ(storage_->leases().sweep(100).removed, 4U);
  expect(3, 2, 1, "expiry");
  EXPECT_EQ(number("SELECT completed FROM endpoint_count"), 3);
  submit("last");
  endOne();
  submitMany(10, 3);
  endOne();
  endOne(true);
  expect(5, 3, 1, "further ends");
  EXPECT_EQ(storage_->jobs().remove("ep", 2), 2U);
  reopen();
  while (storage_->jobs().remove("ep", 2) != 0) continue;
  expect(0, 0, 0, "the removal of the endpoint");
  submit("again");
  endOne();
  expect(1, 0, 0, "a new endpoint of this name");
}

TEST_F(ListingTest, AMigrationKeepsTotalsAndLists) {
  open();
  submit("gone");
  endOne();
  clock_.advance(Millis(30L * 86'400'000));
  EXPECT_EQ(storage_->leases().sweep(100).removed, 1U);
  submitMany(0, 4);
  endOne();
  endOne(true);
  requeue(idOf(1));
  JobSpec slow = spec("slow");
  slow.policy.executionTimeout = Millis(5'000);
  submit(slow);
  ASSERT_EQ(claim(4).size(), 4U);
  clock_.advance(Millis(5'000));
  EXPECT_EQ(storage_->leases().sweep(100).finished.size(), 1U);
  storage_.reset();
  runScript(file(), kBackToVersion10);
  EXPECT_EQ(number("SELECT completed * 100 + failed * 10 + retried FROM endpoint_count"), 221)
      << "the script restores the totals of version 10";

  open();
  EXPECT_EQ(number("SELECT completed * 100 + failed * 10 + retried FROM endpoint_count"), 111);
  const EndpointCounts counts = storage_->jobs().counts("ep");
  EXPECT_EQ(counts.completed, 2U);
  EXPECT_EQ(counts.failed, 2U);
  EXPECT_EQ(counts.retried, 1U);
  expectList(std::nullopt, {"slow", idOf(3), idOf(2), idOf(1), idOf(0)}, "behind the migration");
  expectList(JobState::completed, {idOf(0)}, "behind the migration");
  expectList(JobState::timedOut, {"slow"}, "behind the migration");
}

}  // namespace
}  // namespace jobq::testkit
