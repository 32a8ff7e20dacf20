// Tests of the files of large bodies: where the bytes are, in which order they reach the disk, and when a file goes.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <chrono>

#include "counted_calls.h"
#include "plugins/storage_sqlite/bodies/claimed_inputs.h"
#include "sqlite_bodies_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using SqliteBodies = SqliteBodiesTest;

unsigned modeOf(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mode & 0777U;
}

TEST_F(SqliteBodies, OnlyABodyAboveTheBoundIsAFile) {
  open();
  JobSpec job = spec("a");
  job.input = bodyOf(sqlite::kMostInRow);
  submit(job);
  EXPECT_EQ(finish(claim(1).at(0).lease, job.input), ReportResult::accepted);
  EXPECT_THAT(files(), IsEmpty());
  submit(large("b"));
  EXPECT_THAT(files(), ElementsAre("1"));
  EXPECT_EQ(contentOf(folder() / "1"), bodyOf(kLargeBody));
  EXPECT_EQ(finish(claim(1).at(0).lease, bodyOf(kLargeBody, 'o')), ReportResult::accepted);
  EXPECT_THAT(files(), ElementsAre("1", "2"));
  EXPECT_EQ(contentOf(folder() / "2"), bodyOf(kLargeBody, 'o'));
  EXPECT_EQ(find("b")->output, bodyOf(kLargeBody, 'o'));
}

TEST_F(SqliteBodies, TheFilesAreTheOwnersAlone) {
  open();
  submit(large("a"));
  EXPECT_EQ(modeOf(folder()), 0700U);
  EXPECT_EQ(modeOf(onlyFile()), 0600U);
}

TEST_F(SqliteBodies, ALargeBodyDoesNotPassTheLog) {
  open();
  const int before = logFaults().writes;
  JobSpec job = spec("a");
  job.input = bodyOf(20UL << 20);
  submit(std::move(job));
  EXPECT_EQ(finish(claim(1).at(0).lease, bodyOf(20UL << 20)), ReportResult::accepted);
  EXPECT_LT(logFaults().writes - before, 100) << "a page of 4 KB is two writes";
}

// Else the disk and the processors are busy with the same input again and again.
TEST_F(SqliteBodies, TheInputOfAReturnedJobStaysInTheCache) {
  open();
  submit(large("a"));
  const int before = countedCalls().drops;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_EQ(claimed[0].input, bodyOf(kLargeBody));
    testkit::release(storage_->leases(), std::vector{claimed[0].lease});
  }
  EXPECT_EQ(countedCalls().drops, before);
}

TEST_F(SqliteBodies, TheOldestInputsLeaveTheCache) {
  sqlite::RecentFiles recent(250);
  EXPECT_THAT(recent.add({1, 100}), IsEmpty());
  EXPECT_THAT(recent.add({2, 100}), IsEmpty());
  EXPECT_THAT(recent.add({1, 100}), IsEmpty()) << "a file is there once, and is the newest now";
  const auto number = [](std::int64_t expected) { return testing::Field(&sqlite::BodyFile::number, expected); };
  EXPECT_THAT(recent.add({3, 100}), ElementsAre(number(2)));
  EXPECT_THAT(recent.add({4, 200}), ElementsAre(number(1), number(3)));
}

TEST_F(SqliteBodies, AReadOfALargeInputLetsOtherThreadsRun) {
  open();
  JobSpec job = spec("a");
  job.input = bodyOf(2UL << 20);
  submit(std::move(job));
  const int before = countedCalls().yields;
  EXPECT_EQ(claim(1).at(0).input, bodyOf(2UL << 20));
  EXPECT_GE(countedCalls().yields - before, 31) << "a claim yields after each part of 64 KB";
}

TEST_F(SqliteBodies, AFileIsOnDiskBeforeItsRow) {
  open();
  std::vector<std::string> events;
  bodyFaults().onSync = [&] { events.push_back("file"); };
  logFaults().onSync = [&] { events.push_back("log"); };
  submit(large("a"));
  EXPECT_THAT(events, ElementsAre("file", "log"));
}

TEST_F(SqliteBodies, AJobOfInsertAndClaimHasItsFileFirst) {
  open();
  std::vector<std::string> events;
  bodyFaults().onSync = [&] { events.push_back("file"); };
  logFaults().onSync = [&] { events.push_back("log"); };
  const ClaimWant want{"ep", {"w1"}};
  const auto done = storage_->insertAndClaim(large("a"), policy_, std::nullopt, {want, holder_, 1});
  ASSERT_THAT(done.claimed, SizeIs(1));
  EXPECT_EQ(done.claimed[0].input, bodyOf(kLargeBody));
  EXPECT_TRUE(find("a"));
  EXPECT_THAT(events, ElementsAre("file", "log"));
}

// An input in a file is over kMostFusedInput. A claim of its own reads the file, after memory was found for the input.
TEST_F(SqliteBodies, AClaimInsideAnotherStepLeavesFilesUnread) {
  static_assert(sqlite::kMostInRow >= kMostFusedInput);
  open();
  submit(large("first", 'f'));
  const ClaimWant want{"ep", {"w1", "w2"}};
  const auto done = storage_->insertAndClaim(large("own"), policy_, std::nullopt, {want, holder_, 1});
  EXPECT_THAT(done.claimed, IsEmpty());
  const ClaimResult claimed = storage_->leases().claim(std::vector{want}, holder_, 2, 2 * kLargeBody);
  EXPECT_TRUE(claimed.left.empty());
  ASSERT_THAT(claimed.jobs, SizeIs(2));
  EXPECT_EQ(claimed.jobs[0].input, bodyOf(kLargeBody, 'f'));
  EXPECT_EQ(claimed.jobs[1].input, bodyOf(kLargeBody));
  submit(large("last"));
  const EndedAttempt end{{"own", 1}, Completed{bodyOf(kLargeBody, 'o')}};
  const auto next = storage_->leases().finish({&end, 1}, Durability::synced, FusedClaim{want, holder_, 3});
  EXPECT_EQ(next.reports.at(0), ReportResult::accepted);
  EXPECT_THAT(next.claimed, IsEmpty());
  EXPECT_EQ(find("own")->output, bodyOf(kLargeBody, 'o'));
}

// The rows of the files go with a synced step, and the files only then.
TEST_F(SqliteBodies, FilesGoAfterTheDeletionOfTheirRowsIsOnDisk) {
  open();
  submitAndEnd(large("a"));
  EXPECT_EQ(storage_->jobs().remove("ep", 100), 1U);
  EXPECT_THAT(files(), SizeIs(2));
  std::vector<std::string> events;
  logFaults().onSync = [&] { events.push_back("log"); };
  bodyFaults().onDeletion = [&] { events.push_back("file"); };
  EXPECT_FALSE(sweep().more);
  EXPECT_THAT(events, ElementsAre("log", "file", "file"));
  EXPECT_THAT(files(), IsEmpty());
  events.clear();
  (void)sweep();
  EXPECT_THAT(events, testing::Not(testing::Contains("file")));
}

TEST_F(SqliteBodies, NoFileGoesIfTheDeletionOfItsRowFails) {
  open();
  submit(large("a"));
  EXPECT_EQ(storage_->jobs().remove("ep", 100), 1U);
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  (void)sweep();
  EXPECT_THAT(files(), SizeIs(1));
}

TEST_F(SqliteBodies, ASweepIsBounded) {
  constexpr std::size_t kJobs = 70;
  open();
  for (std::size_t i = 0; i < kJobs; ++i) submit(large("j" + std::to_string(i)));
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), kJobs);
  EXPECT_TRUE(sweep().more);
  EXPECT_THAT(files(), SizeIs(kJobs - 64));
  EXPECT_FALSE(sweep().more);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SqliteBodies, AnOwedWebhookKeepsTheFilesOfItsJob) {
  open();
  JobSpec job = large("a");
  job.webhook = "http://example.com/";
  submitAndEnd(std::move(job));
  EXPECT_THAT(files(), SizeIs(2)) << "the bodies are not copied";
  removeAll();
  EXPECT_THAT(files(), SizeIs(2));
  const auto owed = claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_THAT(owed, SizeIs(1));
  EXPECT_EQ(owed[0].input, bodyOf(kLargeBody));
  EXPECT_EQ(owed[0].job.output, bodyOf(kLargeBody, 'o'));
  EXPECT_TRUE(storage_->outbox().finishDelivery(owed[0].claim(), DeliveryState::delivered));
  (void)sweep();
  EXPECT_THAT(files(), SizeIs(2)) << "a replay may follow";
  clock_.advance(kDeliveryRecordLife);
  (void)sweep();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SqliteBodies, ARetryDropsTheOutputAndKeepsTheInput) {
  open();
  submit(large("a"));
  const LeaseRef lease = claim(1).at(0).lease;
  EXPECT_EQ(storage_->leases().finish(lease, Failed{"no", bodyOf(kLargeBody, 'o')}), ReportResult::accepted);
  EXPECT_THAT(files(), ElementsAre("1", "2"));
  EXPECT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a"}, 1, policy_)));
  (void)sweep();
  EXPECT_THAT(files(), ElementsAre("1"));
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
}

TEST_F(SqliteBodies, ACallWithoutAStoredJobLeavesNoFile) {
  open();
  const Idempotency key{"k", "hash"};
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(large("a"), policy_, {key})));
  EXPECT_TRUE(std::holds_alternative<Duplicate>(storage_->jobs().insert(large("b"), policy_, {key})));
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(large("a"), policy_))) << "the call is repeated";
  EXPECT_NE(errorOf([&] { submit(large("a", 'y')); }), "") << "the id belongs to a job with a different input";
  EXPECT_THAT(files(), ElementsAre("1"));

  const LeaseRef lease = claim(1).at(0).lease;
  const std::string output = bodyOf(kLargeBody, 'o');
  EXPECT_EQ(finish({"a", 7}, output), ReportResult::staleAttempt);
  EXPECT_THAT(files(), ElementsAre("1"));
  EXPECT_EQ(finish(lease, output), ReportResult::accepted);
  EXPECT_THAT(files(), SizeIs(2));
  EXPECT_EQ(finish(lease, output), ReportResult::accepted) << "the call is repeated";
  EXPECT_EQ(finish(lease, bodyOf(kLargeBody, 'p')), ReportResult::staleAttempt);
  EXPECT_EQ(finish(lease, bodyOf(kLargeBody + 1, 'o')), ReportResult::staleAttempt);
  EXPECT_THAT(files(), SizeIs(2));
  EXPECT_EQ(find("a")->output, output);
}

TEST_F(SqliteBodies, BodiesAreThereAfterARestart) {
  open();
  submitAndEnd(large("a"));
  submit(large("b"));
  storage_.reset();
  open();
  EXPECT_EQ(find("a")->output, bodyOf(kLargeBody, 'o'));
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
  submit(large("c"));
  EXPECT_THAT(files(), ElementsAre("1", "2", "3", "4"));
}

TEST_F(SqliteBodies, FilesWithoutARowGoAtTheOpening) {
  open();
  submit(large("a"));
  storage_.reset();
  std::ofstream(folder() / "7") << "of a crash";
  std::ofstream(folder() / "07") << "of a person";
  std::ofstream(folder() / "note") << "of a person";
  open();
  EXPECT_THAT(files(), ElementsAre("07", "1", "note"));
  submit(large("b"));
  EXPECT_THAT(files(), ElementsAre("07", "1", "8", "note")) << "a loss of power may bring a deleted file back";
}

TEST_F(SqliteBodies, AMigratedDatabaseKeepsLargeBodiesInTheRows) {
  open();
  submit("a");
  submit("b");
  storage_.reset();
  runScript(file(),
            "UPDATE job_input SET input = CAST('\"' || hex(zeroblob(200000)) || '\"' AS BLOB) WHERE num = 1; "
            "UPDATE job_input SET input = x'3122' WHERE num = 2;");
  runScript(file(), kBackToTheFirstVersion);
  open();
  const auto claimed = claim(1);
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed[0].input, bodyOf(400'002, '0'));
  EXPECT_EQ(finish(claimed[0].lease, bodyOf(kLargeBody)), ReportResult::accepted);
  EXPECT_EQ(find("a")->output, bodyOf(kLargeBody));
  EXPECT_THAT(files(), SizeIs(1));
  removeAll();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(SqliteBodies, TheCopyOfAMigrationKeepsTheLargeBodies) {
  open();
  submit(large("missing", 'm'));
  std::filesystem::remove(onlyFile());
  submit(large("large", 'l'));
  storage_.reset();
  runScript(file(), kBackToVersion10);
  std::filesystem::create_directory(folder() / "lost+found");  // the folder is a mount point of a separate disk
  const std::filesystem::path copy = file().string() + ".v10.backup";
  std::filesystem::create_directory(copy.string() + ".bodies");  // left by an earlier migration
  open();
  EXPECT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", "large"})));
  EXPECT_EQ(storage_->jobs().remove("ep", 100), 2U);
  while (storage_->leases().sweep(100).more) continue;
  EXPECT_EQ(files(), std::vector<std::string>{"lost+found"});
  storage_.reset();

  // The steps of an admin who goes back to the copy, but with the new program.
  std::filesystem::rename(copy, file());
  std::filesystem::remove_all(folder());
  std::filesystem::rename(copy.string() + ".bodies", folder());
  open();
  const auto claimed = claim(2);
  ASSERT_EQ(claimed.size(), 1U) << "the other file was missing before the migration";
  EXPECT_EQ(claimed[0].input, bodyOf(kLargeBody, 'l'));
}

}  // namespace
}  // namespace jobq::testkit
