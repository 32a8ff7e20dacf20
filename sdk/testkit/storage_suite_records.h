// Conformance: RecordStore (record_store.h).
#pragma once

#include <algorithm>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline Record record(const std::string& id, const std::string& name, const std::string& body = "{}") {
  return Record{"template", id, name, body, 0, {}};
}

TEST_P(StorageSuite, ARecordIsCreatedOnceByIdAndByName) {
  RecordStore& records = storage_->records();
  const auto created = records.create(record("t1", "alpha", "{\"x\":1.0}"));
  ASSERT_TRUE(std::holds_alternative<Stored>(created));
  const auto byId = records.create(record("t1", "beta"));
  ASSERT_TRUE(std::holds_alternative<Taken>(byId));
  const auto byName = records.create(record("t2", "alpha"));
  ASSERT_TRUE(std::holds_alternative<Taken>(byName));
  EXPECT_EQ(std::get<Taken>(byName).byId, "t1");
  EXPECT_TRUE(std::holds_alternative<Stored>(records.create({"endpoint", "t1", "alpha", "{}", 0, {}})))
      << "kinds do not share ids or names";
  EXPECT_TRUE(std::holds_alternative<Stored>(records.create(record("t3", ""))));
  EXPECT_TRUE(std::holds_alternative<Stored>(records.create(record("t4", "")))) << "no name is no clash";
  const auto found = records.find("template", "t1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->body, "{\"x\":1.0}");
  EXPECT_EQ(found->name, "alpha");
  EXPECT_EQ(found->version, std::get<Stored>(created).version);
  EXPECT_EQ(found->changedAt, clock_.now());
  EXPECT_FALSE(records.find("template", "none"));
  std::vector<std::string> ids;
  for (const Record& each : records.list("template")) ids.push_back(each.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"t1", "t3", "t4"}));
}

TEST_P(StorageSuite, ARecordIsUpdatedOnlyFromTheVersionThatWasRead) {
  RecordStore& records = storage_->records();
  const auto first = std::get<Stored>(records.create(record("t1", "alpha"))).version;
  (void)records.create(record("t2", "beta"));
  const auto updated = records.update(record("t1", "gamma", "{\"n\":2}"), first);
  ASSERT_TRUE(std::holds_alternative<Stored>(updated));
  EXPECT_GT(std::get<Stored>(updated).version, first);
  EXPECT_TRUE(std::holds_alternative<Conflict>(records.update(record("t1", "x"), first)));
  const auto now = std::get<Stored>(updated).version;
  EXPECT_TRUE(std::holds_alternative<Taken>(records.update(record("t1", "beta"), now)));
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records.update(record("none", "x"), now)));
  EXPECT_EQ(records.find("template", "t1")->body, "{\"n\":2}");
  EXPECT_EQ(records.find("template", "t1")->name, "gamma");
}

TEST_P(StorageSuite, ChangesSinceAVersionAreListed) {
  RecordStore& records = storage_->records();
  (void)records.create(record("t1", "alpha"));
  (void)records.create(record("t2", "beta"));
  Changes changes = records.changedSince("template", 0);
  ASSERT_EQ(changes.changed.size(), 2U);
  EXPECT_EQ(changes.changed[0].id, "t1");
  EXPECT_TRUE(changes.removed.empty());
  const auto version = changes.version;
  (void)records.update(record("t1", "gamma"), changes.changed[0].version);
  EXPECT_TRUE(records.remove("template", "t2"));
  EXPECT_FALSE(records.remove("template", "t2"));
  (void)records.create(record("brief", ""));
  EXPECT_TRUE(records.remove("template", "brief"));
  changes = records.changedSince("template", version);
  ASSERT_EQ(changes.changed.size(), 1U);
  EXPECT_EQ(changes.changed[0].name, "gamma");
  EXPECT_EQ(changes.removed, (std::vector<std::string>{"t2", "brief"}));
  EXPECT_GT(changes.version, version);
  changes = records.changedSince("template", changes.version);
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_TRUE(changes.removed.empty());
  EXPECT_TRUE(records.changedSince("endpoint", 0).changed.empty());
}

TEST_P(StorageSuite, AnUpdateThatFailsChangesNothing) {
  const auto first = std::get<Stored>(records().create(record("t1", "alpha", "{\"n\":1}"))).version;
  const auto second = std::get<Stored>(records().create(record("t2", "beta"))).version;
  clock_.advance(Millis(10));
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "x", "{}"), second)));
  const auto taken = records().update(record("t1", "beta", "{}"), first);
  ASSERT_TRUE(std::holds_alternative<Taken>(taken));
  EXPECT_EQ(std::get<Taken>(taken).byId, "t2");
  const auto found = records().find("template", "t1");
  EXPECT_EQ(found->name, "alpha");
  EXPECT_EQ(found->body, "{\"n\":1}");
  EXPECT_EQ(found->version, first);
  EXPECT_EQ(found->changedAt, clock_.now() - Millis(10));
  EXPECT_TRUE(records().changedSince("template", second).changed.empty());
}

TEST_P(StorageSuite, ARecordMayKeepLoseAndFreeItsName) {
  auto version = std::get<Stored>(records().create(record("t1", "alpha"))).version;
  clock_.advance(Millis(10));
  auto result = records().update(record("t1", "alpha", "{\"n\":2}"), version);
  ASSERT_TRUE(std::holds_alternative<Stored>(result)) << "its own name is not taken";
  version = std::get<Stored>(result).version;
  EXPECT_EQ(records().find("template", "t1")->changedAt, clock_.now());
  result = records().update(record("t1", ""), version);
  ASSERT_TRUE(std::holds_alternative<Stored>(result));
  EXPECT_TRUE(std::holds_alternative<Stored>(records().create(record("t2", "alpha")))) << "the name is free";
  EXPECT_TRUE(records().remove("template", "t2"));
  EXPECT_TRUE(std::holds_alternative<Stored>(records().create(record("t2", "alpha")))) << "id and name are free";
}

TEST_P(StorageSuite, VersionsGrowOverAllKindsAndAreNeverUsedAgain) {
  std::uint64_t last = 0;
  const auto grew = [&last](std::uint64_t version) {
    EXPECT_GT(version, last);
    last = version;
  };
  Record ignored = record("t1", "a");
  ignored.version = 999'999;
  ignored.changedAt = clock_.now() + Millis(5);
  grew(std::get<Stored>(records().create(ignored)).version);
  EXPECT_LT(last, 999'999U) << "the argument's version is ignored";
  EXPECT_EQ(records().find("template", "t1")->changedAt, clock_.now());
  grew(std::get<Stored>(records().create({"key", "k1", "", "{}", 0, {}})).version);
  grew(std::get<Stored>(records().update(record("t1", "b"), records().find("template", "t1")->version)).version);
  EXPECT_TRUE(records().remove("key", "k1"));
  grew(records().changedSince("key", 0).version);
  grew(std::get<Stored>(records().create({"key", "k1", "", "{}", 0, {}})).version);
}

TEST_P(StorageSuite, ARecordThatCameBackIsChangedAndNotRemoved) {
  (void)records().create(record("t1", "a"));
  const auto version = records().changedSince("template", 0).version;
  EXPECT_TRUE(records().remove("template", "t1"));
  (void)records().create(record("t1", "again"));
  Changes changes = records().changedSince("template", version);
  ASSERT_EQ(changes.changed.size(), 1U);
  EXPECT_EQ(changes.changed[0].name, "again");
  EXPECT_TRUE(changes.removed.empty());
  EXPECT_TRUE(records().remove("template", "t1"));
  changes = records().changedSince("template", version);
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(changes.removed, (std::vector<std::string>{"t1"}));
}

TEST_P(StorageSuite, ARemovalIsRememberedForADay) {
  (void)records().create(record("t1", "a"));
  const auto version = records().changedSince("template", 0).version;
  EXPECT_TRUE(records().remove("template", "t1"));
  clock_.advance(Millis(86'399'999));
  (void)records().create(record("t2", "b"));
  EXPECT_TRUE(records().remove("template", "t2"));
  sweepAll();
  const auto removed = records().changedSince("template", version).removed;
  EXPECT_NE(std::find(removed.begin(), removed.end(), "t1"), removed.end());
}

TEST_P(StorageSuite, ChangesOfOneKindAreByVersion) {
  for (int i = 5; i > 0; --i) (void)records().create(record("t" + std::to_string(i), ""));
  (void)records().create({"key", "k", "", "{}", 0, {}});
  const Changes changes = records().changedSince("template", 0);
  ASSERT_EQ(changes.changed.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_LT(changes.changed[i - 1].version, changes.changed[i].version);
  EXPECT_GE(changes.version, changes.changed.back().version);
  EXPECT_EQ(records().list("template").size(), 5U);
  EXPECT_EQ(records().list("template")[0].id, "t1") << "a list is by id";
  EXPECT_TRUE(records().list("none").empty());
  EXPECT_FALSE(records().remove("none", "t1"));
}

TEST_P(StorageSuite, ARecordsBodyComesBackByteForByte) {
  const std::string body = "{\"b\":1.0,\"a\":\"\\u0000'\",\"long\":\"" + std::string(1 << 20, 'x') + "\"}";
  (void)records().create(record("t1", "it's", body));
  EXPECT_TRUE(records().find("template", "t1")->body == body);
  EXPECT_EQ(records().list("template").at(0).name, "it's");
  EXPECT_TRUE(records().changedSince("template", 0).changed.at(0).body == body);
}

}  // namespace jobq::testkit
