// Tests of the SQLite storage's writer: many callers share one commit, and no caller suffers from another caller's
// fault.
#include <atomic>

#include "open_sqlite.h"
#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

using GroupCommit = SqliteTest;

/// Holds the first commit until every caller has arrived: the next commit takes the gathered group.
class Gathering {
 public:
  explicit Gathering(int callers) : awaited_(callers) {
    logFaults().onSync = [this] { awaitAll(); };
  }
  ~Gathering() {
    logFaults().onSync = [] {};
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  void arrive() {
    Lock lock(mutex_);
    --awaited_;
    changed_.notifyAll();
  }

 private:
  void awaitAll() {
    Lock lock(mutex_);
    for (testkit::WaitDeadline wait("the callers that share a commit"); awaited_ > 0;) wait.on(changed_, mutex_);
  }

  Mutex mutex_;
  Condition changed_;
  int awaited_ JOBQ_GUARDED_BY(mutex_);
};

class BrokenPolicy final : public QueuePolicy {
 public:
  std::string group(const JobSpec& job) const override { return job.apiKeyId; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { throw JobFailed("no rank today"); }
};

TEST_F(GroupCommit, AnAcknowledgedWriteWasSynced) {
  open();
  for (int i = 0; i < 5; ++i) {
    const int before = logFaults().syncs;
    submit("j" + std::to_string(i));
    EXPECT_GT(logFaults().syncs, before);
  }
}

/// Jobs of Storage::insertAndClaim().
class OfferedJobs : public GroupCommit {
 protected:
  void offer(const std::string& id, const std::optional<Idempotency>& key = std::nullopt) {
    const ClaimWant want{"ep", {"w1"}};
    (void)storage_->insertAndClaim(spec(id), policy_, key, {want, holder_, ++calls_});
  }
  CallId calls_ = 0;
};

TEST_F(OfferedJobs, AreShownOnlyWhenDurable) {
  const Idempotency key{"k", "hash"};
  open();
  submit("before");
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  offer("a", key);
  EXPECT_THROW((void)find("a"), StorageError);
  EXPECT_THROW((void)storage_->jobs().list({"ep", {}}, {}), StorageError);
  EXPECT_THROW((void)storage_->jobs().findByIdempotencyKey("ep", "", key), StorageError);
  EXPECT_THROW((void)storage_->chunks().read({"ep", "a"}, 0, 100), StorageError);
  EXPECT_THROW((void)storage_->chunks().consume({"ep", "a"}, 100, ++calls_), StorageError);
  EXPECT_THROW((void)storage_->chunks().readLog({"ep", "a"}), StorageError);
  EXPECT_TRUE(find("before"));
  EXPECT_FALSE(find("absent"));
  EXPECT_FALSE(storage_->jobs().findByIdempotencyKey("ep", "", {"other", "hash"}));
}

TEST_F(OfferedJobs, AreSyncedByTheWriterSoon) {
  open();
  const int before = logFaults().syncs;
  offer("a");
  testkit::waitFor("the sync of the writer", [&] { return logFaults().syncs > before; });
  const int after = logFaults().syncs;
  EXPECT_TRUE(find("a"));
  EXPECT_EQ(logFaults().syncs, after) << "a job is synced once";
}

TEST_F(OfferedJobs, AreDurableWithTheirOutcome) {
  open();
  offer("a");
  EXPECT_EQ(storage_->leases().finish({"a", 1}, Completed{"1"}), ReportResult::accepted);
  const int before = logFaults().syncs;
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(logFaults().syncs, before);
}

// A storage that is read-only since a failed sync still lists the jobs on disk.
TEST_F(OfferedJobs, DoNotHideTheJobsOfOtherEndpoints) {
  open();
  JobSpec other = spec("other");
  other.endpoint = "elsewhere";
  submit(other);
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  offer("a");
  EXPECT_THROW((void)find("a"), StorageError);
  EXPECT_EQ(storage_->jobs().list({"elsewhere", {}}, {}).total, 1U);
}

TEST_F(OfferedJobs, AreShownWhenAFullDiskHasSpaceAgain) {
  open();
  logFaults().syncAnswers = SQLITE_FULL;
  offer("a");
  EXPECT_THROW((void)find("a"), StorageError);
  logFaults().syncAnswers = SQLITE_OK;
  EXPECT_TRUE(find("a"));
}

// The number of commits depends on the machine: WriterTest.WritesWaitingTogetherShareACommit counts them.
TEST_F(GroupCommit, NoJobOfManyCallersIsLost) {
  constexpr int kCallers = 64;
  constexpr int kEach = 8;
  open();
  submit("first");
  Gathering gathering(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      gathering.arrive();
      for (int k = 0; k < kEach; ++k) submit("j" + std::to_string(i * kEach + k));
    });
  }
  joinAll("the callers that share commits", callers);
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U + kCallers * kEach);
}

// A small write shares no commit with large writes (of chunks), and each large write has a separate commit: a small
// write waits for one large write at most.
TEST_F(GroupCommit, LargeWritesHaveCommitsOfTheirOwn) {
  constexpr int kLarge = 3;
  constexpr int kSmall = 8;
  constexpr std::size_t kBytes = 5UL << 20;
  open();
  storage_.reset();
  OpenSqlite parts(file(), clock_, log_);
  const int before = logFaults().syncs;
  Gathering gathering(kLarge + kSmall);
  std::vector<std::thread> callers;
  for (int i = 0; i < kLarge + kSmall; ++i) {
    callers.emplace_back([&, i] {
      const std::size_t bytes = i < kLarge ? kBytes : 10;
      gathering.arrive();
      const std::size_t rows = parts.writer.write(
          [&](sqlite::Step& step) {
            return step.db.query("INSERT INTO job_progress (num, progress) VALUES (?1, zeroblob(?2))")
                .bind(i, bytes)
                .run();
          },
          bytes);
      EXPECT_EQ(rows, 1U);
    });
  }
  joinAll("the callers of both kinds", callers);
  EXPECT_GE(logFaults().syncs - before, kLarge + 1);
}

// A small write waits for one group, so a group of bodies has a bound, whichever operation brings the bodies.
TEST_F(GroupCommit, AGroupOfBodiesHasAtMostAMegabyte) {
  constexpr int kCallers = 32;
  constexpr int kLeastGroups = 3;  // of 3.2 MB
  const std::string body = "{\"x\":\"" + std::string(100UL << 10, 'x') + "\"}";
  open();
  for (int i = 0; i < kCallers; ++i) submit("claimed" + std::to_string(i));
  const std::vector<ClaimedJob> claimed = claim(kCallers);
  ASSERT_EQ(claimed.size(), kCallers);
  for (const bool isInsert : {true, false}) {
    const int before = logFaults().syncs;
    Gathering gathering(kCallers);
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, i] {
        gathering.arrive();
        if (!isInsert)
          return (void)storage_->leases().finish(claimed[static_cast<std::size_t>(i)].lease, Completed{body});
        JobSpec job = spec("inserted" + std::to_string(i));
        job.input = body;
        submit(job);
      });
    }
    joinAll("the callers with bodies", callers);
    EXPECT_GE(logFaults().syncs - before, kLeastGroups) << (isInsert ? "inputs" : "outputs");
  }
}

// The purge takes several commits, to let other writes in between.
TEST_F(GroupCommit, APurgeOfALongQueueIsDoneInSteps) {
  constexpr int kCallers = 32;
  constexpr int kEach = 320;
  open();
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      for (int k = 0; k < kEach; ++k) submit("j" + std::to_string(i * kEach + k));
    });
  }
  joinAll("the callers that share commits", callers);
  const int before = logFaults().syncs;
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), std::size_t{kCallers} * kEach);
  EXPECT_GE(logFaults().syncs - before, 10);
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 0U);
  EXPECT_EQ(storage_->jobs().list({"ep", {}}, {0, 1}).total, 0U);
}

TEST_F(GroupCommit, ABadWriteHarmsNoNeighbour) {
  constexpr int kGood = 12;
  open();
  submit("taken");
  const BrokenPolicy broken;
  Gathering gathering(kGood + 2);
  std::atomic<int> duplicates = 0;
  std::atomic<int> unranked = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < kGood; ++i) {
    callers.emplace_back([&, i] {
      gathering.arrive();
      submit("good" + std::to_string(i));
    });
  }
  callers.emplace_back([&] {
    gathering.arrive();
    JobSpec job = spec("taken");
    job.input = "\"of another job\"";
    try {
      (void)storage_->jobs().insert(std::move(job), policy_);
    } catch (const StorageError&) {
      ++duplicates;
    }
  });
  callers.emplace_back([&] {
    gathering.arrive();
    JobSpec job = spec("unranked");
    job.apiKeyId = "key";
    try {
      (void)storage_->jobs().insert(std::move(job), broken, {Idempotency{"once", "hash"}});
    } catch (const JobFailed&) {
      ++unranked;
    }
  });
  joinAll("the callers that share commits", callers);
  EXPECT_EQ(duplicates, 1);
  EXPECT_EQ(unranked, 1) << "the caller catches the original type of exception";
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U + kGood);
  EXPECT_EQ(claim(100).size(), 1U + kGood);

  JobSpec again = spec("again");
  again.apiKeyId = "key";
  EXPECT_TRUE(std::holds_alternative<Inserted>(
      storage_->jobs().insert(std::move(again), policy_, {Idempotency{"once", "other hash"}})))
      << "the failed insert left no idempotency record";
}

// The second job with the same id and webhook owes a delivery with a used id: the step fails at its end, after all
// other changes of the step.
TEST_F(GroupCommit, AStepFailingAtTheEndChangesNoCounter) {
  open();
  JobSpec job = spec("a");
  job.webhook = "http://example.com/";
  submit(job);
  EXPECT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", "a"})));
  EXPECT_TRUE(storage_->jobs().setTtl({"ep", "a"}, Millis(1'000)));
  clock_.advance(Millis(1'000));
  (void)storage_->leases().sweep(100);
  submit(job);
  EXPECT_THROW((void)storage_->jobs().cancel({"ep", "a"}), StorageError);
  EXPECT_EQ(find("a")->state, JobState::inQueue);
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U);
  EXPECT_EQ(storage_->jobs().list({"ep", JobState::cancelled}, {}).total, 0U);
}

TEST_F(GroupCommit, QueuedWritesFinishBeforeTheStorageCloses) {
  open();
  constexpr int kCallers = 16;
  Gathering gathering(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      gathering.arrive();
      submit("j" + std::to_string(i));
    });
  }
  joinAll("the callers that share commits", callers);
  storage_.reset();
  EXPECT_FALSE(std::filesystem::exists(file().string() + "-wal")) << "the log was emptied into the file";
  open();
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, static_cast<std::uint64_t>(kCallers));
}

}  // namespace
}  // namespace jobq::testkit
