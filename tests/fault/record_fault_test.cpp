// Records on a failing storage: the k-th call of the operations, or the k-th call of SQLite to its disk, for every k of
// a scenario. A change answered with Stored is there, a change with an exception has happened whole or not at all, and
// the store goes on; the judge sees every answer in between. The whole server on such storages:
// `tests/fault/storage_fault_test.cpp`, `tests/fault/io_error_test.cpp`; power cuts: `tests/fault/power_loss_test.cpp`.
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>

#include "disk.h"
#include "faulty_storage.h"
#include "judge.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "tests/conformance/named_storages.h"

namespace jobq::fault {
namespace {

using model::Judge;

class RecordFault : public testing::TestWithParam<const char*> {
 protected:
  RecordFault() { Disk::instance(); }
  ~RecordFault() override {
    Disk::instance().fail({});
    judge_.reset();
  }

  /// Throws StorageError if the storage fails meanwhile.
  void open() {
    static testkit::SilentLog log;
    static const testkit::MapConfig config({{"log", std::to_string(256 << 10)}, {"readers", "2"}});
    judge_->close();
    isOpen_ = false;
    const std::string name = GetParam();
    auto storage = testkit::openNamed(name, PluginEnv{config, clock_, log, folder_, false});
    judge_->reopen(std::make_shared<FaultyStorage>(std::move(storage), plan_), model::FormerEnd::process);
    isOpen_ = true;
  }

  /// Does `step`, and once more if the storage fails meanwhile: one fault is one failure. In between the operator acts
  /// as needed.
  template <class Step>
  auto insist(Step step) {
    try {
      return step(judge_->records());
    } catch (const StorageError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20U) << "an error names the reason";
      ++failures_;
      mend_();
      return step(judge_->records());
    }
  }

  std::uint64_t create(const Record& record) {
    return insist([&](RecordStore& records) {
      auto result = records.create(record);
      if (const auto* now = std::get_if<Stored>(&result)) return now->version;
      ++hadHappened_;  // the change had happened although the call threw
      return records.find(record.kind, record.id)->version;
    });
  }
  /// Reads, changes and stores a record, like every caller.
  void update(const std::string& id, const std::string& name, const std::string& body) {
    insist([&](RecordStore& records) {
      const auto found = records.find("template", id);
      if (!found) throw std::logic_error(id + " is lost");
      EXPECT_TRUE(std::holds_alternative<Stored>(records.update({"template", id, name, body, 0, {}}, found->version)));
      return true;
    });
  }
  void remove(const std::string& id) {
    insist([&](RecordStore& records) { return records.remove("template", id); });
    EXPECT_FALSE(insist([&](RecordStore& records) { return records.remove("template", id); }))
        << "the record was already removed";
  }
  std::uint64_t follow(std::uint64_t version) {
    return insist([&](RecordStore& records) { return records.changedSince("template", version).version; });
  }

  /// Uses every operation with each of its answers, and writes enough bytes for a checkpoint.
  void live() {
    const auto first = create({"template", "a", "alpha", "{\"n\":1}", 0, {}});
    create({"template", "b", "beta", std::string(90'000, 'x'), 0, {}});
    create({"key", "a", "alpha", "{}", 0, {}});
    const auto version = follow(0);
    update("a", "gamma", "{\"n\":2}");
    EXPECT_TRUE(std::holds_alternative<Conflict>(insist([&](RecordStore& records) {
      return records.update({"template", "a", "x", "{}", 0, {}}, first);
    })));
    EXPECT_TRUE(std::holds_alternative<NameTaken>(insist([](RecordStore& records) {
      return records.create({"template", "c", "beta", "{}", 0, {}});
    })));
    EXPECT_TRUE(std::holds_alternative<NoRecord>(insist([](RecordStore& records) {
      return records.update({"template", "c", "", "{}", 0, {}}, 1);
    })));
    remove("b");
    create({"template", "c", "beta", std::string(90'000, 'y'), 0, {}});
    update("c", "", std::string(80'000, 'z'));
    remove("a");
    create({"template", "a", "alpha", "{\"n\":3}", 0, {}});
    follow(version);
    (void)insist([](RecordStore& records) { return records.list("template"); });
    (void)insist([](RecordStore& records) { return records.find("key", "a"); });
    EXPECT_EQ(judge_->compared().model().records.list("template").size(), 2U);
    EXPECT_EQ(judge_->compared().model().records.find("template", "a")->body, "{\"n\":3}");
  }

  /// Runs one storage with the planned failures and checks the remaining content. Returns false if no call failed.
  bool play(const std::function<void()>& fail) {
    const bool durable = std::string(GetParam()) != "memory";
    judge_.emplace(nullptr);
    isOpen_ = false;
    folder_.clear();
    failures_ = 0;
    fail();
    try {
      openPatiently();
      live();
      if (durable) judge_->close();
      const bool struck = failures_ > 0 || Disk::instance().hasFailed();
      Disk::instance().fail({});
      plan_.heal();
      if (durable) open();
      judge_->inspect();
      return struck;
    } catch (const std::exception& found) {
      ADD_FAILURE() << found.what();
      return false;
    }
  }

  void openPatiently() {
    try {
      open();
    } catch (const StorageError&) {
      ++failures_;
      mend_();
    }
  }

  const testkit::TemporaryFolder folder_;
  testkit::ManualClock clock_;
  FaultPlan plan_{clock_};
  std::optional<Judge> judge_;
  std::function<void()> mend_ = [] {};
  int failures_ = 0;
  int hadHappened_ = 0;  // failed changes found in place after the reopening of the storage
  bool isOpen_ = false;
};

TEST_P(RecordFault, OfEachCall) {
  std::uint64_t k = 1;
  for (; play([&] { plan_.failCall(plan_.calls() + k); }); ++k) {
    ASSERT_FALSE(HasFailure()) << "when call " << k << " fails, " << plan_.failed().back();
  }
  ASSERT_FALSE(HasFailure());
  const auto failed = plan_.failed();
  for (const char* operation : {"create", "update", "remove", "find", "list", "changedSince"}) {
    EXPECT_NE(std::find(failed.begin(), failed.end(), std::string("records.") + operation), failed.end()) << operation;
  }
  std::cout << k - 1 << " calls" << std::endl;
}

INSTANTIATE_TEST_SUITE_P(Over, RecordFault, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         [](const auto& info) { return info.param; });

/// The faults of a disk, once and for ever. After an error the storage is opened again on a sound disk; after a full
/// disk the storage goes on once there is space.
class RecordDisk : public RecordFault {
 protected:
  /// Leaves the files for the next process as they are now, not as after an orderly close.
  void die() {
    constexpr const char* kFiles[] = {"jobq.db", "jobq.db-wal"};
    const std::filesystem::path aside = folder_ / "aside";
    std::filesystem::create_directory(aside);
    for (const char* file : kFiles) std::filesystem::copy_file(folder_ / file, aside / file);
    judge_->close();
    isOpen_ = false;
    for (const char* file : kFiles) std::filesystem::rename(aside / file, folder_ / file);
    std::filesystem::remove(aside);
  }

  void strikeAll(DiskCall call, int answer) {
    mend_ = [this, answer] {
      Disk::instance().fail({});
      if (dies_ && isOpen_) die();
      if (answer != SQLITE_FULL || !isOpen_) open();
    };
    for (const bool forever : {false, true}) {
      std::uint64_t number = 1;
      const auto failDisk = [&] { Disk::instance().fail({call, number, forever, answer}); };
      for (; play(failDisk); ++number) {
        ASSERT_FALSE(HasFailure()) << nameOf(call) << " " << number << (forever ? " and after" : "");
      }
      ASSERT_FALSE(HasFailure()) << nameOf(call) << " " << number << (forever ? " and after" : "");
      std::cout << nameOf(call) << (forever ? " and all after it" : "") << ": " << number - 1 << " faults" << std::endl;
      EXPECT_GT(number, 1U);
    }
  }

  bool dies_ = false;
};

TEST_P(RecordDisk, FailsAtEachWrite) { strikeAll(DiskCall::write, SQLITE_IOERR); }
TEST_P(RecordDisk, FailsAtEachSync) { strikeAll(DiskCall::sync, SQLITE_IOERR); }
TEST_P(RecordDisk, FailsAtEachSyncAndTheProcessDies) {
  dies_ = true;
  strikeAll(DiskCall::sync, SQLITE_IOERR);
  EXPECT_GT(hadHappened_, 0) << "no write survived a failed sync, so the test saw no doubt";
}
TEST_P(RecordDisk, FailsAtEachTruncation) { strikeAll(DiskCall::truncate, SQLITE_IOERR); }
TEST_P(RecordDisk, FailsAtEachOpening) { strikeAll(DiskCall::open, SQLITE_IOERR); }
TEST_P(RecordDisk, FailsAtEachDeletion) { strikeAll(DiskCall::remove, SQLITE_IOERR); }
TEST_P(RecordDisk, IsFullAtEachWrite) { strikeAll(DiskCall::write, SQLITE_FULL); }

INSTANTIATE_TEST_SUITE_P(Over, RecordDisk, testing::Values("sqlite"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jobq::fault
