// Random operations on records alone, dense enough for ids, names and versions to meet all the time; and stores with
// deliberate faults, each to be found by the judge.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>

#include "judge.h"
#include "random_operations.h"
#include "seeds.h"
#include "shrink.h"
#include "testkit/forwarding_storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"
#include "tests/conformance/named_storages.h"

namespace jobq::model {
namespace {

constexpr std::size_t kOperations = 800;  // a seventh concerns records, time or sweeps

/// A storage whose records pass through a store of the test.
class OtherRecords final : public testkit::ForwardingStorage {
 public:
  OtherRecords(std::unique_ptr<Storage> inner, std::unique_ptr<RecordStore> records)
      : ForwardingStorage(*inner), owned_(std::move(inner)), records_(std::move(records)) {}

  RecordStore& records() override { return *records_; }

 private:
  const std::unique_ptr<Storage> owned_;
  const std::unique_ptr<RecordStore> records_;
};

enum class Fault {
  none,
  staleUpdates,       // an update overwrites any version
  sharedNames,        // two records have one name
  staleNames,         // a rename is not stored
  versionsStay,       // an update does not grow the version
  versionsOfOneKind,  // each kind has a counter of its own
  lostRemovals,       // changes lack the removed records
  lostChanges,        // changes lack the last change
  removedAndThere,    // a record created again is told as removed as well
  undated,            // an update keeps the old moment
};
constexpr Fault kFaults[] = {Fault::staleUpdates,      Fault::sharedNames,  Fault::staleNames,
                             Fault::versionsStay,      Fault::lostRemovals, Fault::lostChanges,
                             Fault::versionsOfOneKind, Fault::undated,      Fault::removedAndThere};

/// The operations of the model, with a fault.
class WrongRecords final : public RecordStore {
 public:
  WrongRecords(const Clock& clock, Fault fault) : clock_(clock), fault_(fault) {}

  CreateResult create(Record record) override {
    if (fault_ == Fault::sharedNames) record.name += "|" + record.id;
    return of(record.kind).create(std::move(record), clock_.now());
  }
  UpdateResult update(Record record, std::uint64_t expected) override {
    RecordModel& records = of(record.kind);
    const auto before = records.find(record.kind, record.id);
    if (fault_ == Fault::staleUpdates && before) expected = before->version;
    if (fault_ == Fault::staleNames && before) record.name = before->name;
    if (fault_ == Fault::sharedNames) record.name += "|" + record.id;
    if (fault_ == Fault::undated && before) return records.update(std::move(record), expected, before->changedAt);
    auto result = records.update(std::move(record), expected, clock_.now());
    auto* now = std::get_if<Stored>(&result);
    if (fault_ == Fault::versionsStay && now != nullptr) now->version = expected;
    return result;
  }
  std::optional<Record> find(std::string_view kind, std::string_view id) override {
    return seen(of(kind).find(std::string(kind), std::string(id)));
  }
  std::vector<Record> list(std::string_view kind) override {
    std::vector<Record> records = of(kind).list(std::string(kind));
    for (Record& record : records) record = *seen(record);
    return records;
  }
  bool remove(std::string_view kind, std::string_view id) override {
    return of(kind).remove(std::string(kind), std::string(id), clock_.now());
  }
  Changes changedSince(std::string_view kind, std::uint64_t version) override {
    Changes changes = of(kind).changedSince(std::string(kind), version, clock_.now());
    for (Record& record : changes.changed) record = *seen(record);
    if (fault_ == Fault::lostRemovals) changes.removed.clear();
    if (fault_ == Fault::lostChanges && changes.changed.size() > 2) changes.changed.pop_back();
    if (fault_ == Fault::removedAndThere && changes.changed.size() > 2)
      changes.removed.push_back(changes.changed[0].id);
    return changes;
  }

 private:
  RecordModel& of(std::string_view kind) {
    return stores_[fault_ == Fault::versionsOfOneKind ? std::string(kind) : ""];
  }
  std::optional<Record> seen(std::optional<Record> record) const {
    if (record && fault_ == Fault::sharedNames) record->name.resize(record->name.find('|'));
    return record;
  }

  const Clock& clock_;
  const Fault fault_;
  std::map<std::string, RecordModel> stores_;
};

class RecordPlay : public testing::Test {
 protected:
  std::unique_ptr<Storage> open(Clock& clock, const std::string& name) {
    static testkit::SilentLog log;
    static const testkit::MapConfig config;
    return testkit::openNamed(name, PluginEnv{config, clock, log, dir_, false});
  }

  static std::vector<Operation> operationsOf(std::uint64_t seed) {
    auto operations = randomOperations(seed, kOperations);
    std::erase_if(operations, [](const Operation& operation) {
      return !isOfRecords(operation.action) && operation.action != Action::advance && operation.action != Action::sweep;
    });
    return operations;
  }

  /// Returns the first difference; empty if every answer was right. `fault` selects a deliberately wrong store.
  std::string play(const std::vector<Operation>& operations, const std::string& name, Fault fault = Fault::none) {
    dir_.clear();
    testkit::ManualClock clock;
    std::unique_ptr<Storage> storage = open(clock, name);
    if (fault != Fault::none) {
      storage = std::make_unique<OtherRecords>(std::move(storage), std::make_unique<WrongRecords>(clock, fault));
    }
    Judge judge(std::move(storage));
    Player player("r", clock);
    try {
      for (const Operation& operation : operations) player.play(judge, operation);
      judge.inspect();
    } catch (const Disagreement& found) {
      return found.what();
    }
    return {};
  }

  const testkit::TemporaryFolder dir_;
};

class RecordProperty : public RecordPlay, public testing::WithParamInterface<const char*> {};

TEST_P(RecordProperty, EveryAnswerIsTheModels) {
  const std::string storage = GetParam();
  const Seeds seeds(storage == "memory" ? 5'000 : storage == "sqlite" ? 60 : 40);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const auto operations = operationsOf(seed);
    if (play(operations, GetParam()).empty()) continue;
    const auto fewest =
        shrink<Operation>(operations, [this](const auto& fewer) { return !play(fewer, GetParam()).empty(); });
    std::string report;
    for (const Operation& operation : fewest) report += "\n  " + text(operation);
    FAIL() << "seed " << seed << ": " << play(fewest, GetParam()) << "\nafter" << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, RecordProperty, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         [](const auto& info) { return info.param; });

class WrongStores : public RecordPlay {};

TEST_F(WrongStores, AreFound) {
  for (const Fault fault : kFaults) {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      found += play(operationsOf(seed), "memory", fault).empty() ? 0 : 1;
    }
    EXPECT_GT(found, 15) << "fault " << static_cast<int>(fault);
  }
}

}  // namespace
}  // namespace jobq::model
