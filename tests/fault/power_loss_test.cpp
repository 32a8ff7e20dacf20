// Power loss: random work on the SQLite storage, the power goes at a random step, bytes without a sync are lost, kept
// or torn, and the storage is opened again. Acknowledged changes are there and whole; a change under way is there whole
// or not at all. Each seed is one database with several power cuts, also during its opening.
//   JOBQ_SEED=17 build/tests/power_loss_test     plays one seed again
//   JOBQ_SEEDS=2500 build/tests/power_loss_test  10,000 power cuts
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <ostream>
#include <thread>

#include "../conformance/sqlite_fixture.h"
#include "disk.h"
#include "judge.h"
#include "random_operations.h"
#include "seeds.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::fault {
namespace {

using model::Disagreement;
using model::FormerEnd;
using model::Judge;
using model::Player;

constexpr int kCuts = 4;            // for each seed
constexpr std::size_t kWork = 120;  // operations between two cuts, if the power holds
// Ranges of steps for the cut: about as many steps as the work takes.
constexpr std::uint64_t kReach = 600;
constexpr std::uint64_t kReachOfRecords = 200;  // of a single caller

// A caller with an endpoint of its own and its own model of the expected content.
struct Caller {
  Caller(const std::string& name, testkit::ManualClock& clock) : judge(nullptr), player(name, clock) {}

  void work(const std::vector<model::Operation>& operations) {
    try {
      for (const model::Operation& operation : operations) player.play(judge, operation);
    } catch (const StorageError&) {
      // The power is gone, or the storage refuses all calls since the cut: no change is acknowledged any more.
    } catch (const Disagreement&) {
      // The judge keeps the disagreement.
    }
  }

  Judge judge;
  Player player;
};

class PowerLoss : public testing::Test {
 protected:
  ~PowerLoss() override { Disk::instance().forget(); }

  /// The default is a short log, so the power also cuts off checkpoints and the restart of the log.
  std::shared_ptr<Storage> open(Clock& clock, std::uint64_t logSize = 256 << 10) {
    static testkit::SilentLog log;
    const testkit::MapConfig config({{"log", std::to_string(logSize)}, {"readers", "2"}});
    return testkit::loadPlugin<Storage>(plugin_, "sqlite", PluginEnv{config, clock, log, folder_, false});
  }

  // Opens the storage, works on the storage and closes it, while the power may go at any moment.
  void live(std::vector<std::unique_ptr<Caller>>& callers, testkit::ManualClock& clock, std::mt19937_64& random) {
    Disk& disk = Disk::instance();
    disk.cutAt(1 + random() % (recordsAlone_ ? callers.size() * kReachOfRecords : kReach));
    std::shared_ptr<Storage> storage;
    try {
      storage = open(clock);
    } catch (const StorageError&) {
      EXPECT_TRUE(disk.isCut()) << "opening fails without a cause";
      return;
    }
    for (const auto& caller : callers) caller->judge.reopen(storage, FormerEnd::process);
    if (callers.size() > 1) beginLife(*storage, callers);
    std::vector<std::thread> threads;
    for (const auto& caller : callers) {
      auto operations = model::randomOperations(random(), recordsAlone_ ? 6 * kWork : kWork,
                                                callers.size() > 1 ? model::kActionsOfOneEndpoint : model::kActions);
      if (recordsAlone_) std::erase_if(operations, [](auto& op) { return !model::isOfRecords(op.action); });
      // All callers share the clock.
      if (callers.size() > 1) std::erase_if(operations, [](auto& op) { return op.action == model::Action::advance; });
      threads.emplace_back([&caller, operations] { caller->work(operations); });
    }
    testkit::joinAll("the callers of one life", threads);
    for (const auto& caller : callers) caller->judge.close();
    cuts_ += disk.isCut() ? 1 : 0;
  }

  /// Begins a life of the node for callers on one storage: a life that one of them began would be unknown to the
  /// others. A power cut meanwhile leaves open whether the life began; no later step happens before the next opening.
  static void beginLife(Storage& storage, std::vector<std::unique_ptr<Caller>>& callers) {
    try {
      const Holder life = storage.nodes().join("node");
      for (const auto& caller : callers) caller->judge.follow(life);
    } catch (const StorageError&) {
      EXPECT_TRUE(Disk::instance().isCut()) << "the join fails without a cause";
    }
  }

  /// Returns a description of the first loss; empty if every acknowledged change was there.
  std::string play(std::uint64_t seed) {
    folder_.clear();
    Disk& disk = Disk::instance();
    disk.watch(folder_);
    std::mt19937_64 random(seed);
    testkit::ManualClock clock;
    std::vector<std::unique_ptr<Caller>> callers;
    // A single caller repeats exactly by its seed; four callers share commits in an order of chance.
    const int count = seed % 4 == 3 ? 4 : 1;
    for (int i = 0; i < count; ++i) callers.push_back(std::make_unique<Caller>("c" + std::to_string(i), clock));
    for (int cut = 0; cut < kCuts; ++cut) {
      live(callers, clock, random);
      disk.restore(random);
      if (const std::string found = inspect(callers, clock); !found.empty()) return found;
    }
    return {};
  }

  // Checks with the power on that every acknowledged change is there.
  std::string inspect(std::vector<std::unique_ptr<Caller>>& callers, Clock& clock) {
    try {
      std::shared_ptr<Storage> storage = open(clock);
      for (const auto& caller : callers) {
        if (!caller->judge.disagreement().empty()) return caller->judge.disagreement();
        caller->judge.reopen(storage, FormerEnd::power);
        caller->player.losePower();
        caller->judge.inspect();
        caller->judge.close();
      }
      storage.reset();
      return inspectBodies();
    } catch (const Disagreement& found) {
      return found.what();
    } catch (const StorageError& error) {
      return std::string("the storage cannot be opened any more: ") + error.what();
    }
  }

  // Checks that each large body has its file, no file is left over, and the owners of the files are counted right.
  std::string inspectBodies() {
    constexpr char kWrong[] =
        "SELECT count(*) FROM body_file WHERE owners <> (SELECT count(*) FROM job_input WHERE input_file = id) + "
        "(SELECT count(*) FROM job_output WHERE output_file = id) + "
        "(SELECT count(*) FROM delivery_body WHERE input_file = id) + "
        "(SELECT count(*) FROM delivery_body WHERE output_file = id)";
    const auto rows = numberIn("SELECT count(*) FROM body_file");
    const auto files = std::distance(std::filesystem::directory_iterator(folder_ / "bodies"), {});
    bodies_ += rows;
    if (rows != files) return std::to_string(files) + " body files for " + std::to_string(rows) + " rows";
    const auto wrong = numberIn(kWrong);
    if (wrong != 0) return std::to_string(wrong) + " body files with a wrong number of owners";
    // An ended job alone names an output, each output is named by one job, and each job has one input.
    const auto strays = numberIn(
        "SELECT (SELECT count(*) FROM job_output) + (SELECT count(*) FROM job WHERE output_num IS NOT NULL) "
        "- 2 * (SELECT count(*) FROM job JOIN job_output USING (output_num) WHERE state > 1) "
        "+ (SELECT count(*) FROM job LEFT JOIN job_input USING (num) WHERE (input IS NULL) = (brief_input IS NULL))");
    return strays == 0 ? "" : std::to_string(strays) + " inputs or outputs without a job, or jobs without theirs";
  }
  std::int64_t numberIn(const char* sql) {
    sqlite3* database = nullptr;
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_open_v2((folder_ / "jobq.db").c_str(), &database, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
    const std::int64_t answer = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return answer;
  }

  const testkit::TemporaryFolder folder_;
  std::int64_t bodies_ = 0;  // in files, over all inspections
  std::string plugin_ = JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so";
  bool recordsAlone_ = false;
  int cuts_ = 0;
};

TEST_F(PowerLoss, AcknowledgedWritesSurvive) {
  const model::Seeds seeds(125);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const std::string found = play(seed);
    ASSERT_EQ(found, "") << "seed " << seed;
  }
  std::cout << seeds.count * kCuts << " lives, " << cuts_ << " of them ended by a power cut at work, " << bodies_
            << " bodies in files" << std::endl;
  if (seeds.count > 1) {
    EXPECT_GT(bodies_, 0) << "no life had a body in a file";
  }
}

// Records alone: no commit of a job brings a record to the disk by chance.
TEST_F(PowerLoss, NoAcknowledgedRecordIsLost) {
  recordsAlone_ = true;
  const model::Seeds seeds(60);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const std::string found = play(seed);
    ASSERT_EQ(found, "") << "seed " << seed;
  }
  std::cout << seeds.count * kCuts << " lives, " << cuts_ << " of them ended by a power cut at work" << std::endl;
}

// A database of the first version with a job in it; the power goes at each step of the migration to the present
// version.
TEST_F(PowerLoss, AMigrationIsWholeOrWasNot) {
  testkit::ManualClock clock;
  const model::Turns policy;
  JobSpec job;
  job.id = "old";
  job.endpoint = "ep";
  job.input = "{}";
  ASSERT_TRUE(std::holds_alternative<Inserted>(open(clock)->jobs().insert(JobSpec(job), policy)));
  testkit::runScript(folder_ / "jobq.db", testkit::kBackToTheFirstVersion);
  const std::string first = testkit::contentOf(folder_ / "jobq.db");
  const std::filesystem::path backup = folder_ / "jobq.db.v1.backup";

  Disk& disk = Disk::instance();
  std::mt19937_64 random(1);
  bool reached = true;
  int backups = 0;
  std::uint64_t step = 1;
  for (; reached; ++step) {
    folder_.clear();
    std::ofstream(folder_ / "jobq.db", std::ios::binary) << first;
    disk.watch(folder_);
    disk.cutAt(step);
    try {
      open(clock).reset();
    } catch (const StorageError&) {
      ASSERT_TRUE(disk.isCut());
    }
    reached = disk.isCut();
    disk.restore(random);
    backups += std::filesystem::exists(backup) ? 1 : 0;
    ASSERT_TRUE(open(clock)->jobs().find({"ep", "old"})) << "step " << step;
    ASSERT_TRUE(std::filesystem::exists(backup)) << "step " << step;
    testkit::runScript(backup, "SELECT * FROM job; PRAGMA integrity_check;");
    disk.forget();
  }
  std::cout << step - 2 << " steps, at " << backups << " of them there was a copy already" << std::endl;
  EXPECT_GT(step, 20U);
}

// Counts the syncs that each operation waits for.
TEST_F(PowerLoss, ClaimsAndReportsWaitForNoSync) {
  testkit::ManualClock clock;
  const model::Turns policy;
  Disk& disk = Disk::instance();
  disk.watch(folder_);
  const std::shared_ptr<Storage> storage = open(clock, 64 << 20);  // no checkpoint, which syncs too
  const Holder life = storage->nodes().join("node");
  const auto syncsOf = [&disk](auto operation) {
    disk.fail({});
    operation();
    return disk.calls(DiskCall::sync);
  };
  const auto insert = [&](const JobId& id) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{}";
    ASSERT_TRUE(std::holds_alternative<Inserted>(storage->jobs().insert(std::move(job), policy)));
  };
  const std::vector wants{ClaimWant{"ep", {"w0"}}};
  LeaseRef lease;
  const auto claim = [&](CallId id) {
    const std::vector<ClaimedJob> claimed = storage->leases().claim(wants, life, id).jobs;
    ASSERT_EQ(claimed.size(), 1U);
    lease = claimed.front().lease;
  };
  EXPECT_EQ(syncsOf([&] { insert("first"); }), 1U);
  EXPECT_EQ(syncsOf([&] { claim(1); }), 0U);
  EXPECT_EQ(syncsOf([&] { EXPECT_EQ(storage->leases().progress(lease, "1"), ReportResult::accepted); }), 0U);
  EXPECT_EQ(syncsOf([&] {
              EXPECT_EQ(storage->chunks().append(lease, 0, {{"1", "", false}}), ReportResult::accepted);
            }),
            0U);
  EXPECT_EQ(syncsOf([&] { EXPECT_EQ(storage->chunks().appendLog(lease, 0, {{}}), ReportResult::accepted); }), 0U);
  EXPECT_EQ(syncsOf([&] { EXPECT_EQ(storage->nodes().beat(life, {}), BeatResult::extended); }), 0U);
  EXPECT_EQ(syncsOf([&] { EXPECT_EQ(storage->leases().finish(lease, Completed{"1"}), ReportResult::accepted); }), 1U);

  // A synced operation that changes nothing brings the claim before to the disk.
  insert("second");
  const LeaseRef ended = lease;
  EXPECT_EQ(syncsOf([&] { claim(2); }), 0U);
  EXPECT_EQ(syncsOf([&] {
              EXPECT_EQ(storage->leases().finish(ended, Failed{"", ""}), ReportResult::staleAttempt);
            }),
            1U);
  EXPECT_EQ(syncsOf([&] {
              EXPECT_EQ(storage->leases().finish(ended, Failed{"", ""}), ReportResult::staleAttempt);
            }),
            0U);
}

TEST_F(PowerLoss, TheProofFailsWithoutFsync) {
  for (const std::string mutant : {"no_fsync", "late_fsync"}) {
    plugin_ = JOBQ_BROKEN_DIR "/" + mutant + "/libjobq_storage_sqlite.so";
    for (const bool records : {false, true}) {
      recordsAlone_ = records;
      int found = 0;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) found += play(seed).empty() ? 0 : 1;
      EXPECT_GT(found, 10) << mutant << " loses " << (records ? "records" : "acknowledged steps")
                           << ", and no check noticed";
    }
  }
}

TEST_F(PowerLoss, TheProofFailsWithoutASyncOfBodies) {
  plugin_ = JOBQ_BROKEN_DIR "/no_body_sync/libjobq_storage_sqlite.so";
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) found += play(seed).empty() ? 0 : 1;
  EXPECT_GT(found, 10) << "bodies are lost, and no check noticed";
}

}  // namespace
}  // namespace jobq::fault
