// Tests of large bodies with unwritable or unreadable files, and of the backup of bodies.
#include <gmock/gmock.h>

#include "open_sqlite.h"
#include "plugins/storage_sqlite/schema/backup.h"
#include "sqlite_bodies_fixture.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class BodyDamage : public SqliteBodiesTest {
 protected:
  /// Submits a job with a large input in the file 1, and a job behind it.
  void submitTwo() {
    submit(large("broken"));
    submit(large("sound", 's'));
  }
  void expectOnlySoundIsClaimed() {
    const auto claimed = claim(2);
    ASSERT_THAT(claimed, SizeIs(1));
    EXPECT_EQ(claimed[0].lease.job, "sound");
    EXPECT_EQ(claimed[0].input, bodyOf(kLargeBody, 's'));
  }
  RequeueResult retry(const JobId& id) { return storage_->jobs().requeue({"ep", id}, find(id)->attempt, policy_); }
};

TEST_F(BodyDamage, AFullDiskIsTheCallersErrorAndHeals) {
  open();
  bodyFaults().writesFrom = 3;
  bodyFaults().writeAnswers = SQLITE_FULL;
  EXPECT_THAT(errorOf([&] { submit(large("a")); }), HasSubstr("free space on the disk of data.dir"));
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_FALSE(find("a"));
  EXPECT_TRUE(submitted("small"));
  constexpr int kRoom = 256 << 10;
  const auto bytesOfACheck = [&] {
    const int before = logFaults().bytes;
    storage_->check();
    return logFaults().bytes - before;
  };
  bodyFaults().reset();
  EXPECT_GT(bytesOfACheck(), kRoom) << "the check asks for room";
  EXPECT_LT(bytesOfACheck(), kRoom);
  submit(large("a"));
}

TEST_F(BodyDamage, AnErrorOfTheDiskIsTheErrorOfTheAffectedCallerAlone) {
  open();
  submit(spec("runs"));
  const LeaseRef lease = claim(1).at(0).lease;
  const std::string output = bodyOf(kLargeBody, 'o');
  for (std::atomic<int>* answers : {&bodyFaults().openAnswers, &bodyFaults().writeAnswers, &bodyFaults().syncAnswers}) {
    *answers = SQLITE_IOERR;
    EXPECT_THAT(errorOf([&] { submit(large("a")); }), HasSubstr(" data.dir/bodies/"))
        << "callers of the API read the sentence: the folders of the machine are not theirs";
    EXPECT_NE(errorOf([&] { (void)finish(lease, output); }), "");
    EXPECT_THAT(files(), IsEmpty());
    EXPECT_FALSE(find("a"));
    storage_->check();
    *answers = SQLITE_OK;
  }
  submit(large("a"));
  EXPECT_EQ(finish(lease, output), ReportResult::accepted);
}

TEST_F(BodyDamage, AFailedStepLeavesNoFile) {
  open();
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_NE(errorOf([&] { submit(large("a")); }), "");
  EXPECT_THAT(files(), IsEmpty());
  logFaults().reset();
  submit(large("a"));
}

// The log may hold the step although the sync failed: the next opening decides, and finds the body together with the
// job.
TEST_F(BodyDamage, AStepOfUnknownEndKeepsItsFileUntilTheNextOpening) {
  open();
  submit("before");
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  EXPECT_NE(errorOf([&] { submit(large("a")); }), "");
  EXPECT_THAT(files(), SizeIs(1));
  logFaults().reset();
  EXPECT_THAT(errorOf([&] { submit(large("b")); }), HasSubstr("read-only"));
  EXPECT_THAT(files(), SizeIs(1)) << "a read-only storage writes no file";
  storage_.reset();
  open();
  EXPECT_EQ(files().size(), find("a") ? 1U : 0U);
  EXPECT_EQ(claim(1).at(0).lease.job, "before");
  for (const ClaimedJob& job : claim(1)) EXPECT_EQ(job.input, bodyOf(kLargeBody));
}

TEST_F(BodyDamage, AJobWithoutItsInputFailsAndBlocksNoOther) {
  open();
  submitTwo();
  const std::string body = contentOf(folder() / "1");
  fs::remove(folder() / "1");
  expectOnlySoundIsClaimed();
  EXPECT_EQ(find("broken")->state, JobState::inProgress);
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "broken"}})) << "the callers learn of the failure";
  EXPECT_EQ(swept.requeuedAt, std::vector<EndpointId>{"ep"}) << "a claim without jobs looks like an empty queue";
  EXPECT_EQ(find("broken")->state, JobState::failed);
  EXPECT_EQ(find("broken")->error, "the input of the job cannot be read; the log of the server has the reason");
  EXPECT_THAT(log_.text(), HasSubstr("data.dir/bodies/1 is missing; stop the server and restore"));
  EXPECT_THAT(claim(1), IsEmpty());

  EXPECT_THAT(errorOf([&] { (void)retry("broken"); }), HasSubstr("is missing"));
  std::ofstream(folder() / "1") << body;
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry("broken")));
  EXPECT_EQ(claim(1).at(0).input, bodyOf(kLargeBody));
}

TEST_F(BodyDamage, AJobWithACutInputFails) {
  open();
  submitTwo();
  fs::resize_file(folder() / "1", 1'000);
  expectOnlySoundIsClaimed();
  (void)sweep();
  EXPECT_THAT(log_.text(), HasSubstr("the file data.dir/bodies/1 has 1000 bytes instead of 262145"));
}

TEST_F(BodyDamage, AFailedSweepForgetsNoLeftOutJob) {
  open();
  submit(large("a"));
  fs::remove(onlyFile());
  EXPECT_THAT(claim(1), IsEmpty());
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_NE(errorOf([&] { (void)sweep(); }), "");
  logFaults().reset();
  EXPECT_THAT(sweep().finished, SizeIs(1));
}

TEST_F(BodyDamage, AClaimOfAMeanwhileDeletedJobIsLeftOut) {
  open();
  storage_.reset();
  OpenSqlite parts(file(), clock_, log_);
  sqlite::Claim claim;
  claim.setInputFile({7, 300'000});
  claim.job.endpoint = "ep";
  EXPECT_THAT(parts.inputs.read({std::move(claim)}), IsEmpty());
  EXPECT_EQ(parts.leases.sweep(9).requeuedAt, std::vector<EndpointId>{"ep"}) << "other jobs may wait";
}

TEST_F(BodyDamage, AMissingOutputHarmsTheReadsOfTheAffectedJobAlone) {
  open();
  submitAndEnd(spec("broken"));
  submitAndEnd(spec("sound"));
  fs::remove(folder() / "1");
  EXPECT_THAT(errorOf([&] { (void)find("broken"); }),
              HasSubstr("the file data.dir/bodies/1 is missing; stop the server and restore"));
  EXPECT_EQ(find("sound")->output, bodyOf(kLargeBody, 'o'));
  EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).jobs.size(), 2U);
  bodyFaults().readAnswers = SQLITE_IOERR_READ;
  EXPECT_THAT(errorOf([&] { (void)find("sound"); }), HasSubstr("cannot read data.dir/bodies/2: "));
  bodyFaults().reset();
  EXPECT_TRUE(find("sound"));
  removeAll();
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(BodyDamage, ARepeatedReportOfADamagedOutputIsAccepted) {
  open();
  submit("a");
  const LeaseRef lease = claim(1).at(0).lease;
  const Completed outcome{bodyOf(kLargeBody, 'o')};
  ASSERT_EQ(storage_->leases().finish(lease, outcome), ReportResult::accepted);
  fs::remove(onlyFile());
  EXPECT_EQ(storage_->leases().finish(lease, outcome), ReportResult::accepted)
      << "the worker would repeat the report for ever";
}

TEST_F(BodyDamage, AWebhookWithoutItsBodyIsGivenUp) {
  open();
  for (const JobId id : {"broken", "sound"}) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/";
    submitAndEnd(std::move(job));
  }
  fs::remove(folder() / "1");
  const auto owed = claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_THAT(owed, SizeIs(1));
  EXPECT_EQ(owed[0].job.id, "sound");
  const auto record = storage_->outbox().list("ep", "broken", 9);
  ASSERT_THAT(record, SizeIs(1));
  EXPECT_EQ(record[0].state, DeliveryState::abandoned);
  EXPECT_THAT(record[0].attempts.at(0).reason.value_or(""), HasSubstr("is missing"));
  EXPECT_EQ(storage_->outbox().owed("ep").count, 1U);
}

TEST_F(BodyDamage, AWebhookWithAnUnreadableBodyKeepsNoOtherBack) {
  open();
  for (const JobId id : {"broken", "sound"}) {
    JobSpec job = id == "broken" ? large(id) : spec(id);
    job.webhook = "http://example.com/";
    submitAndEnd(std::move(job));
  }
  bodyFaults().openAnswers = SQLITE_CANTOPEN;
  const auto owed = claimAllDue(storage_->outbox(), Millis(1'000));
  bodyFaults().reset();
  EXPECT_THAT(owed, IsEmpty()) << "both have outputs in files";
  EXPECT_EQ(storage_->outbox().owed("ep").count, 2U);
  EXPECT_THAT(claimAllDue(storage_->outbox(), Millis(1'000)), IsEmpty());
  clock_.advance(Millis(60'000));
  EXPECT_THAT(claimAllDue(storage_->outbox(), Millis(1'000)), SizeIs(2));
}

TEST_F(BodyDamage, ANumberIsNotUsedAgain) {
  open();
  submit(large("a"));
  removeAll();
  EXPECT_THAT(files(), IsEmpty());
  storage_.reset();
  open();
  submit(large("b"));
  EXPECT_EQ(onlyFile().filename(), "2") << "a stale row of file 1 would show a foreign body";
}

class BodyBackup : public SqliteBodiesTest {
 protected:
  fs::path copy() const { return restored_.path() / "jobq.db"; }
  void restore() {
    storage_.reset();
    storage_ = openAt(restored_);
    holder_ = storage_->nodes().join("node");
  }

  const TemporaryFolder restored_;
};

TEST_F(BodyBackup, ACopyIsOneFileWithAllBodies) {
  open();
  JobSpec hooked = large("ended", 'e');
  hooked.webhook = "http://example.com/";
  submitAndEnd(std::move(hooked));
  submit(large("waits", 'w'));
  submit("small");
  ASSERT_EQ(storage_->backupTo(copy(), {}), BackupResult::written);
  EXPECT_THAT(std::vector<fs::directory_entry>(fs::directory_iterator(restored_.path()), {}), SizeIs(1));
  EXPECT_THAT(files(), SizeIs(3)) << "the server's own files stay";

  // Files of an earlier life lie beside a copy that was put into the place of the database.
  fs::create_directory(restored_ / "bodies");
  std::ofstream(restored_ / "bodies" / "1") << "of another database";
  restore();
  EXPECT_TRUE(fs::is_empty(restored_ / "bodies"));
  EXPECT_EQ(find("ended")->output, bodyOf(kLargeBody, 'o'));
  const auto claimed = claim(2);
  ASSERT_THAT(claimed, SizeIs(2));
  EXPECT_EQ(claimed[0].input, bodyOf(kLargeBody, 'w'));
  EXPECT_EQ(claimed[1].input, spec("small").input);
  const auto owed = claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_THAT(owed, SizeIs(1));
  EXPECT_EQ(owed[0].input, bodyOf(kLargeBody, 'e'));
  EXPECT_EQ(owed[0].job.output, bodyOf(kLargeBody, 'o'));
  submit(large("new"));
  removeAll();
  EXPECT_TRUE(fs::is_empty(restored_ / "bodies"));
}

TEST_F(BodyBackup, ACopyWithAnUnreadableBodyLeavesNoFile) {
  open();
  submit(large("a"));
  fs::remove(onlyFile());
  EXPECT_THAT(errorOf([&] { (void)storage_->backupTo(copy(), {}); }), HasSubstr("is missing"));
  EXPECT_TRUE(fs::is_empty(restored_.path()));
}

TEST_F(BodyBackup, AStopEndsTheCopyOfBodies) {
  open();
  submit(large("a"));
  storage_.reset();
  OpenSqlite parts(file(), clock_, log_);
  std::stop_source stop;
  bodyFaults().onOpening = [&] { stop.request_stop(); };
  EXPECT_EQ(sqlite::writeBackup(file(), parts.bodies, copy(), stop.get_token()), BackupResult::stopped);
  EXPECT_TRUE(fs::is_empty(restored_.path()));
}

TEST_F(BodyBackup, NoFileGoesDuringACopy) {
  open();
  submit(large("a"));
  bool isFirst = true;
  bodyFaults().onOpening = [&] {
    if (!std::exchange(isFirst, false)) return;
    EXPECT_EQ(storage_->jobs().remove("ep", 100), 1U);
    (void)sweep();
    EXPECT_THAT(files(), SizeIs(1)) << "the copy reads the file now";
  };
  EXPECT_EQ(storage_->backupTo(copy(), {}), BackupResult::written);
  bodyFaults().reset();
  (void)sweep();
  EXPECT_THAT(files(), IsEmpty());
}

}  // namespace
}  // namespace jobq::testkit
