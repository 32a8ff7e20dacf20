// Conformance: RecordStore::changedSince, by which a node follows the changes of other nodes
// (sdk/include/jobq/record_store.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "testkit/storage_suite.h"
#include "testkit/storage_suite_records.h"

namespace jobq::testkit {

/// A reader's copy of the records of a kind, kept up to date by changes alone.
class RecordFollower {
 public:
  explicit RecordFollower(std::string kind) : kind_(std::move(kind)) {}

  /// Applies the changes since the preceding call, and checks that the changes are possible since then.
  void follow(RecordStore& records) {
    const Changes changes = records.changedSince(kind_, version_);
    EXPECT_GE(changes.version, version_);
    for (const std::string& id : changes.removed) copy_.erase(id);
    std::uint64_t last = version_;
    for (const Record& record : changes.changed) {
      EXPECT_EQ(record.kind, kind_);
      EXPECT_GT(record.version, last) << "the versions rise from the requested version on";
      last = record.version;
      copy_[record.id] = record;
    }
    EXPECT_LE(last, changes.version) << "the next call would return the record again";
    version_ = changes.version;
  }

  std::vector<Record> list() const {
    std::vector<Record> records;
    for (const auto& [id, record] : copy_) records.push_back(record);
    return records;
  }

 private:
  const std::string kind_;
  std::uint64_t version_ = 0;
  std::map<std::string, Record> copy_;
};

inline std::vector<std::string> sorted(std::vector<std::string> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST_P(StorageSuite, ChangesSinceAVersionAreListed) {
  (void)records().create(record("t1", "alpha"));
  (void)records().create(record("t2", "beta"));
  Changes changes = records().changedSince("template", 0);
  EXPECT_EQ(idsOf(changes.changed), (std::vector<std::string>{"t1", "t2"}));
  EXPECT_TRUE(changes.removed.empty());
  const auto version = changes.version;
  (void)records().update(record("t1", "gamma"), changes.changed.at(0).version);
  EXPECT_TRUE(records().remove("template", "t2"));
  (void)records().create(record("brief", ""));
  EXPECT_TRUE(records().remove("template", "brief"));
  changes = records().changedSince("template", version);
  ASSERT_EQ(changes.changed.size(), 1U);
  EXPECT_EQ(describe(changes.changed[0]), describe(records().find("template", "t1")));
  EXPECT_EQ(sorted(changes.removed), (std::vector<std::string>{"brief", "t2"}));
  EXPECT_GT(changes.version, version);
  changes = records().changedSince("template", changes.version);
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_TRUE(changes.removed.empty());
}

TEST_P(StorageSuite, ChangesFromTheBeginningAreAllExistingRecords) {
  EXPECT_TRUE(records().changedSince("template", 0).changed.empty());
  for (const char* id : {"c", "a", "b", "gone"}) (void)records().create(record(id, id, std::string("\"") + id + "\""));
  (void)records().update(record("c", "again"), records().find("template", "c")->version);
  EXPECT_TRUE(records().remove("template", "gone"));
  const Changes changes = records().changedSince("template", 0);
  EXPECT_EQ(idsOf(changes.changed), (std::vector<std::string>{"a", "b", "c"}))
      << "each record is listed once, by version";
  for (const Record& each : changes.changed) {
    EXPECT_EQ(describe(each), describe(records().find("template", each.id)));
  }
}

TEST_P(StorageSuite, ChangesAreOfOneKind) {
  (void)records().create(record("t1", "a"));
  const auto version = records().changedSince("endpoint", 0).version;
  for (const char* kind : {"key", "template"}) (void)records().create({kind, "x", "x", "{}", 0, {}});
  EXPECT_TRUE(records().remove("key", "x"));
  EXPECT_TRUE(records().remove("template", "t1"));
  EXPECT_TRUE(records().changedSince("endpoint", 0).changed.empty());
  EXPECT_TRUE(records().changedSince("endpoint", version).removed.empty());
  EXPECT_EQ(records().changedSince("key", version).removed, (std::vector<std::string>{"x"}));
  EXPECT_EQ(records().changedSince("template", version).removed, (std::vector<std::string>{"t1"}));
  EXPECT_EQ(idsOf(records().changedSince("template", version).changed), (std::vector<std::string>{"x"}));
}

TEST_P(StorageSuite, NoChangeFollowsAFutureVersion) {
  (void)records().create(record("t1", "a"));
  (void)records().create(record("t2", "b"));
  EXPECT_TRUE(records().remove("template", "t2"));
  const auto last = records().changedSince("template", 0).version;
  for (std::uint64_t after : {last, last + 1, last + 1'000, std::numeric_limits<std::uint64_t>::max()}) {
    const Changes changes = records().changedSince("template", after);
    EXPECT_TRUE(changes.changed.empty()) << after;
    EXPECT_TRUE(changes.removed.empty()) << after;
  }
}

TEST_P(StorageSuite, ARecreatedRecordIsChangedAndNotRemoved) {
  (void)records().create(record("t1", "a"));
  const auto version = records().changedSince("template", 0).version;
  EXPECT_TRUE(records().remove("template", "t1"));
  const auto between = records().changedSince("template", version).version;
  (void)records().create(record("t1", "again"));
  for (std::uint64_t since : {version, between}) {
    const Changes changes = records().changedSince("template", since);
    ASSERT_EQ(changes.changed.size(), 1U);
    EXPECT_EQ(changes.changed[0].name, "again");
    EXPECT_TRUE(changes.removed.empty());
  }
  EXPECT_TRUE(records().remove("template", "t1"));
  for (std::uint64_t since : {version, between}) {
    const Changes changes = records().changedSince("template", since);
    EXPECT_TRUE(changes.changed.empty());
    EXPECT_EQ(changes.removed, (std::vector<std::string>{"t1"})) << "a record removed twice is listed once";
  }
}

TEST_P(StorageSuite, ARemovalIsRememberedForADay) {
  (void)records().create(record("t1", "a"));
  const auto version = records().changedSince("template", 0).version;
  EXPECT_TRUE(records().remove("template", "t1"));
  clock_.advance(Millis(86'399'999));
  (void)records().create(record("t2", "b"));
  EXPECT_TRUE(records().remove("template", "t2"));
  sweepAll();
  EXPECT_EQ(sorted(records().changedSince("template", version).removed), (std::vector<std::string>{"t1", "t2"}));
}

TEST_P(StorageSuite, ARemovalIsForgottenAfterADayAndASweep) {
  for (const char* id : {"t1", "t2", "t3"}) {
    (void)records().create(record(id, id));
    EXPECT_TRUE(records().remove("template", id));
  }
  (void)records().create(record("stays", ""));
  clock_.advance(Millis(86'400'000));
  for (int i = 0; i < 3; ++i) (void)leases().sweep(1);
  EXPECT_TRUE(records().changedSince("template", 0).removed.empty());
  EXPECT_EQ(idsOf(records().changedSince("template", 0).changed), (std::vector<std::string>{"stays"}));
  (void)records().create(record("t1", "t1"));
  const auto version = records().changedSince("template", 0).version;
  EXPECT_TRUE(records().remove("template", "t1"));
  sweepAll();
  EXPECT_EQ(records().changedSince("template", version).removed, (std::vector<std::string>{"t1"}))
      << "each removal is kept for a day";
}

// A reader that asked at any moment of a history and asks again at the end has the present records.
TEST_P(StorageSuite, ChangesLeadFromEveryMomentToTheNext) {
  std::vector<RecordFollower> followers;
  const auto moment = [&] {
    followers.emplace_back("template");
    followers.back().follow(records());
    EXPECT_EQ(describe(followers.back().list()), describe(records().list("template")));
    clock_.advance(Millis(10));
  };
  const auto renamed = [this](const std::string& id, const std::string& name) {
    return stored(records().update(record(id, name, "\"" + name + "\""), records().find("template", id)->version));
  };
  moment();
  EXPECT_TRUE(stored(records().create(record("b", "one"))));
  moment();
  EXPECT_TRUE(stored(records().create({"key", "b", "one", "{}", 0, {}})));
  moment();
  EXPECT_TRUE(stored(records().create(record("a", "two"))));
  moment();
  EXPECT_TRUE(renamed("b", "three"));
  moment();
  EXPECT_TRUE(records().remove("template", "b"));
  moment();
  EXPECT_TRUE(renamed("a", "one"));
  moment();
  EXPECT_TRUE(stored(records().create(record("b", "two"))));
  moment();
  EXPECT_FALSE(stored(records().create(record("c", "two"))));
  moment();
  EXPECT_TRUE(records().remove("template", "a"));
  moment();
  EXPECT_TRUE(stored(records().create(record("c", "one"))));
  EXPECT_TRUE(records().remove("template", "c"));
  EXPECT_TRUE(records().remove("key", "b"));
  for (RecordFollower& follower : followers) {
    follower.follow(records());
    EXPECT_EQ(describe(follower.list()), describe(records().list("template")));
  }
}

}  // namespace jobq::testkit
