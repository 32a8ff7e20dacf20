// Conformance: each operation of RecordStore (sdk/include/jobq/record_store.h). storage_suite_record_changes.h has the
// tests of changes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline Record record(const std::string& id, const std::string& name, const std::string& body = "{}") {
  return Record{"template", id, name, body, 0, {}};
}

/// Returns all fields of a record as text: equal texts mean equal records.
inline std::string describe(const Record& record) {
  return record.kind + '/' + record.id + " '" + record.name + "' version " + std::to_string(record.version) + " of " +
         std::to_string(toEpochMillis(record.changedAt)) + ": " + record.body;
}
inline std::string describe(const std::vector<Record>& records) {
  std::string all;
  for (const Record& each : records) all += describe(each) + '\n';
  return all;
}
inline std::string describe(const std::optional<Record>& record) { return record ? describe(*record) : "none"; }

inline std::vector<std::string> idsOf(const std::vector<Record>& records) {
  std::vector<std::string> ids;
  for (const Record& each : records) ids.push_back(each.id);
  return ids;
}

template <class Result>
bool stored(const Result& result) {
  return std::holds_alternative<Stored>(result);
}
/// Returns the stored version. Returns 0 and fails the test if the record was not stored.
template <class Result>
std::uint64_t versionOf(const Result& result) {
  const auto* now = std::get_if<Stored>(&result);
  EXPECT_NE(now, nullptr) << "the record was not stored";
  return now != nullptr ? now->version : 0;
}
/// Returns the id of the record that has the id or name, or an empty string if the result is not NameTaken.
template <class Result>
std::string holderOf(const Result& result) {
  const auto* taken = std::get_if<NameTaken>(&result);
  return taken != nullptr ? taken->byId : "";
}

TEST_P(StorageSuite, ARecordIsCreatedOnceByIdAndByName) {
  const auto created = records().create(record("t1", "alpha", "{\"x\":1.0}"));
  ASSERT_TRUE(stored(created));
  EXPECT_EQ(holderOf(records().create(record("t1", "beta"))), "t1");
  EXPECT_EQ(holderOf(records().create(record("t2", "alpha"))), "t1");
  EXPECT_FALSE(records().find("template", "t2"));
  EXPECT_TRUE(stored(records().create({"endpoint", "t1", "alpha", "{}", 0, {}}))) << "kinds do not share ids or names";
  EXPECT_TRUE(stored(records().create(record("t3", ""))));
  EXPECT_TRUE(stored(records().create(record("t4", "")))) << "records without a name do not clash";
  const auto found = records().find("template", "t1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, "template");
  EXPECT_EQ(found->id, "t1");
  EXPECT_EQ(found->body, "{\"x\":1.0}");
  EXPECT_EQ(found->name, "alpha");
  EXPECT_EQ(found->version, versionOf(created));
  EXPECT_EQ(found->changedAt, clock_.now());
  EXPECT_FALSE(records().find("template", "none"));
  EXPECT_FALSE(records().find("none", "t1"));
  EXPECT_EQ(idsOf(records().list("template")), (std::vector<std::string>{"t1", "t3", "t4"}));
  EXPECT_EQ(idsOf(records().list("endpoint")), (std::vector<std::string>{"t1"}));
}

TEST_P(StorageSuite, ARecordWithATakenIdAndNameNamesAHolder) {
  (void)records().create(record("t1", "alpha"));
  (void)records().create(record("t2", "beta"));
  const std::string holder = holderOf(records().create(record("t1", "beta")));
  EXPECT_TRUE(holder == "t1" || holder == "t2") << holder;
}

TEST_P(StorageSuite, AFailedCreationHasNoEffect) {
  (void)records().create(record("t1", "alpha", "{\"n\":1}"));
  const std::string before = describe(records().list("template"));
  const auto version = records().changedSince("template", 0).version;
  clock_.advance(Millis(10));
  EXPECT_EQ(holderOf(records().create(record("t1", "x", "{}"))), "t1");
  EXPECT_EQ(holderOf(records().create(record("t2", "alpha", "{}"))), "t1");
  EXPECT_EQ(describe(records().list("template")), before);
  const Changes changes = records().changedSince("template", version);
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_TRUE(changes.removed.empty());
  EXPECT_TRUE(stored(records().create(record("t2", "x")))) << "a failed creation takes no id and no name";
}

TEST_P(StorageSuite, ARecordIsUpdatedOnlyFromTheReadVersion) {
  const auto first = versionOf(records().create(record("t1", "alpha")));
  (void)records().create(record("t2", "beta"));
  const auto now = versionOf(records().update(record("t1", "gamma", "{\"n\":2}"), first));
  EXPECT_GT(now, first);
  for (std::uint64_t other : {first, std::uint64_t{0}, now - 1, now + 1, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "x"), other))) << other;
  }
  EXPECT_EQ(holderOf(records().update(record("t1", "beta"), now)), "t2");
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records().update(record("none", "x"), now)));
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records().update({"none", "t1", "x", "{}", 0, {}}, now)));
  EXPECT_EQ(records().find("template", "t1")->body, "{\"n\":2}");
  EXPECT_EQ(records().find("template", "t1")->name, "gamma");
}

TEST_P(StorageSuite, AnUpdateOfARemovedRecordFindsNoRecordOrAConflict) {
  const auto first = versionOf(records().create(record("t1", "alpha")));
  EXPECT_TRUE(records().remove("template", "t1"));
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records().update(record("t1", "x"), first)));
  const auto second = versionOf(records().create(record("t1", "alpha")));
  EXPECT_GT(second, first);
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "x"), first)))
      << "a new record never has the version of a removed record";
  EXPECT_TRUE(stored(records().update(record("t1", "x"), second)));
}

TEST_P(StorageSuite, AFailedUpdateHasNoEffect) {
  const auto first = versionOf(records().create(record("t1", "alpha", "{\"n\":1}")));
  const auto second = versionOf(records().create(record("t2", "beta")));
  const std::string before = describe(records().list("template"));
  clock_.advance(Millis(10));
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "x", "{}"), second)));
  EXPECT_EQ(holderOf(records().update(record("t1", "beta", "{}"), first)), "t2");
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records().update(record("t3", "x", "{}"), second)));
  EXPECT_EQ(describe(records().list("template")), before);
  EXPECT_TRUE(records().changedSince("template", second).changed.empty());
  EXPECT_TRUE(stored(records().create(record("t3", "x")))) << "a failed update takes no name";
}

TEST_P(StorageSuite, ARecordMayKeepLoseAndFreeItsName) {
  auto version = versionOf(records().create(record("t1", "alpha")));
  clock_.advance(Millis(10));
  auto result = records().update(record("t1", "alpha", "{\"n\":2}"), version);
  ASSERT_TRUE(stored(result)) << "a record may keep the name";
  version = versionOf(result);
  EXPECT_EQ(records().find("template", "t1")->changedAt, clock_.now());
  result = records().update(record("t1", ""), version);
  ASSERT_TRUE(stored(result));
  EXPECT_TRUE(stored(records().create(record("t2", "alpha")))) << "the name is free";
  EXPECT_TRUE(records().remove("template", "t2"));
  EXPECT_TRUE(stored(records().create(record("t2", "alpha")))) << "id and name are free";
}

TEST_P(StorageSuite, ARenameTakesTheNewNameAndFreesTheOld) {
  const auto a = versionOf(records().create(record("a", "alpha")));
  const auto b = versionOf(records().create(record("b", "beta")));
  EXPECT_EQ(holderOf(records().update(record("a", "beta"), a)), "b") << "two records cannot swap names in a step";
  const auto freed = versionOf(records().update(record("a", "gamma"), a));
  EXPECT_EQ(holderOf(records().create(record("c", "gamma"))), "a");
  EXPECT_TRUE(stored(records().update(record("b", "alpha"), b)));
  EXPECT_TRUE(stored(records().update(record("a", "beta"), freed)));
  EXPECT_EQ(holderOf(records().create(record("c", "alpha"))), "b");
  EXPECT_EQ(holderOf(records().create(record("c", "beta"))), "a");
  EXPECT_TRUE(stored(records().create(record("c", "gamma"))));
  EXPECT_TRUE(stored(records().create({"endpoint", "e", "gamma", "{}", 0, {}})));
}

TEST_P(StorageSuite, RecordsWithoutANameNeverClash) {
  const auto a = versionOf(records().create(record("a", "alpha")));
  const auto b = versionOf(records().create(record("b", "beta")));
  EXPECT_TRUE(stored(records().update(record("a", ""), a)));
  EXPECT_TRUE(stored(records().update(record("b", ""), b)));
  EXPECT_TRUE(stored(records().create(record("c", ""))));
  EXPECT_EQ(records().list("template").size(), 3U);
}

TEST_P(StorageSuite, ARemovalTakesOneRecordOnce) {
  for (const char* id : {"t1", "t2"}) (void)records().create(record(id, id));
  (void)records().create({"endpoint", "t1", "t1", "{}", 0, {}});
  EXPECT_FALSE(records().remove("template", "none"));
  EXPECT_FALSE(records().remove("none", "t1"));
  EXPECT_TRUE(records().remove("template", "t1"));
  EXPECT_FALSE(records().remove("template", "t1")) << "the record is already removed";
  EXPECT_FALSE(records().find("template", "t1"));
  EXPECT_EQ(idsOf(records().list("template")), (std::vector<std::string>{"t2"}));
  EXPECT_TRUE(records().find("endpoint", "t1"));
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
  grew(versionOf(records().create(ignored)));
  EXPECT_LT(last, 999'999U) << "the argument's version is ignored";
  EXPECT_EQ(records().find("template", "t1")->changedAt, clock_.now());
  grew(versionOf(records().create({"key", "k1", "", "{}", 0, {}})));
  const auto read = records().find("template", "t1")->version;
  ignored.name = "b";
  grew(versionOf(records().update(ignored, read)));
  EXPECT_LT(last, 999'999U);
  EXPECT_EQ(records().find("template", "t1")->version, last);
  EXPECT_EQ(records().find("template", "t1")->changedAt, clock_.now());
  EXPECT_TRUE(records().remove("key", "k1"));
  grew(records().changedSince("key", 0).version);
  grew(versionOf(records().create({"key", "k1", "", "{}", 0, {}})));
  EXPECT_TRUE(records().remove("key", "k1"));
  EXPECT_TRUE(records().remove("template", "t1"));
  grew(versionOf(records().create(record("t1", "a"))));
}

TEST_P(StorageSuite, AChangeIsDatedByTheStoresClock) {
  const auto dated = [this] { return records().find("template", "t1")->changedAt; };
  const Instant created = storage_->now();
  const auto version = versionOf(records().create(record("t1", "a")));
  clock_.advance(Millis(1'234));
  EXPECT_EQ(dated(), created) << "a read is not a change";
  (void)records().update(record("t1", "b"), version);
  EXPECT_EQ(dated(), created + Millis(1'234));
  EXPECT_EQ(records().list("template").at(0).changedAt, storage_->now());
  EXPECT_EQ(records().changedSince("template", 0).changed.at(0).changedAt, storage_->now());
  EXPECT_TRUE(records().remove("template", "t1"));
  clock_.advance(Millis(1));
  (void)records().create(record("t1", "a"));
  EXPECT_EQ(dated(), created + Millis(1'235));
}

TEST_P(StorageSuite, AListIsByIdWhateverTheOrderOfTheChanges) {
  for (const char* id : {"b", "B", "a", "ab", "10", "9"}) (void)records().create(record(id, ""));
  (void)records().update(record("9", "last"), records().find("template", "9")->version);
  EXPECT_EQ(idsOf(records().list("template")), (std::vector<std::string>{"10", "9", "B", "a", "ab", "b"}));
  EXPECT_TRUE(records().list("none").empty());
}

// Names are compared byte for byte: letter case, final blanks and forms of a letter keep two names apart.
TEST_P(StorageSuite, KindsIdsAndNamesDifferByAnyByte) {
  const std::string e = "\xC3\xA9";
  const std::string combined = "e\xCC\x81";
  std::vector<std::string> texts{"a", "A", "a ", " a", "it's", "%", e, combined, "\xF0\x9F\x98\x80"};
  for (const std::string& text : texts) EXPECT_TRUE(stored(records().create(record(text, text)))) << text;
  for (const std::string& text : texts) {
    EXPECT_EQ(holderOf(records().create(record("other", text))), text);
    EXPECT_EQ(records().find("template", text)->name, text);
    EXPECT_TRUE(stored(records().create({text, "id", "name", "{}", 0, {}}))) << text;
    EXPECT_EQ(records().list(text).at(0).kind, text);
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(idsOf(records().list("template")), texts);
  EXPECT_TRUE(records().list("Template").empty());
}

TEST_P(StorageSuite, ARecordsBodyComesBackByteForByte) {
  const std::string awkward = std::string("\0{\"a\":\"\\u0000'\0", 15) + "\xC3\xA9\xF0\x9F\x98\x80\xFF\r\n";
  const std::string large = "{\"b\":1.0,\"a\":\"" + std::string(1 << 20, 'x') + "\"}";
  for (const std::string& body : {std::string(), awkward, large}) {
    const auto version = versionOf(records().create(record("t1", "it's", body)));
    EXPECT_TRUE(records().find("template", "t1")->body == body) << body.size();
    EXPECT_TRUE(records().list("template").at(0).body == body) << body.size();
    EXPECT_TRUE(records().changedSince("template", version - 1).changed.at(0).body == body) << body.size();
    const std::string longer = body + '\0' + body;
    EXPECT_TRUE(stored(records().update(record("t1", "it's", longer), version)));
    EXPECT_TRUE(records().find("template", "t1")->body == longer) << body.size();
    EXPECT_TRUE(records().remove("template", "t1"));
  }
}

}  // namespace jobq::testkit
