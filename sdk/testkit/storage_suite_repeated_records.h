// Conformance: repeated changes of records (sdk/include/jobq/record_store.h).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

#include "jobq/call_id.h"
#include "jobq/record_store.h"
#include "testkit/storage_suite_records.h"
#include "testkit/storage_suite_repeated_calls.h"

namespace jobq::testkit {

/// Returns a template with the id of a change.
inline Record changed(const std::string& id, const std::string& name, CallId change) {
  Record made = record(id, name);
  made.change = change;
  return made;
}

TEST_P(RepeatedCalls, ARepeatedCreationIsOneRecord) {
  const std::uint64_t version = versionOf(records().create(changed("t1", "alpha", 70)));
  EXPECT_EQ(versionOf(records().create(changed("t1", "alpha", 70))), version);
  EXPECT_EQ(records().find("template", "t1")->change, 0U) << "a caller cannot repeat the change of a different caller";
  EXPECT_EQ(records().list("template").at(0).change, 0U);
  EXPECT_TRUE(records().changedSince("template", version).changed.empty()) << "the repeated call changed no record";
  EXPECT_EQ(holderOf(records().create(changed("t1", "alpha", 71))), "t1") << "the change is of a different caller";
  EXPECT_EQ(holderOf(records().create(changed("t2", "alpha", 70))), "t1") << "the call creates a different record";
  EXPECT_EQ(records().list("template").size(), 1U);
}

// Without an id a second call is a second change.
TEST_P(RepeatedCalls, AChangeWithoutAnIdIsNotRepeatable) {
  const std::uint64_t version = versionOf(records().create(record("t1", "alpha")));
  EXPECT_EQ(holderOf(records().create(record("t1", "alpha"))), "t1");
  EXPECT_TRUE(stored(records().update(record("t1", "beta"), version)));
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "beta"), version)));
}

TEST_P(RepeatedCalls, ARepeatedUpdateIsOneChange) {
  const std::uint64_t first = versionOf(records().create(changed("t1", "alpha", 70)));
  const std::uint64_t second = versionOf(records().update(changed("t1", "beta", 71), first));
  EXPECT_GT(second, first);
  EXPECT_EQ(versionOf(records().update(changed("t1", "beta", 71), first)), second);
  EXPECT_TRUE(records().changedSince("template", second).changed.empty());
  EXPECT_EQ(holderOf(records().create(changed("t1", "alpha", 70))), "t1") << "the record has changed since";
  const std::uint64_t third = versionOf(records().update(changed("t1", "gamma", 72), second));
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(changed("t1", "beta", 71), first)));
  EXPECT_EQ(records().find("template", "t1")->name, "gamma");
  EXPECT_EQ(versionOf(records().update(changed("t1", "gamma", 72), second)), third);
}

TEST_P(RepeatedCalls, ARemovalEndsTheIdsOfChanges) {
  const std::uint64_t version = versionOf(records().create(changed("t1", "alpha", 70)));
  EXPECT_TRUE(records().remove("template", "t1"));
  EXPECT_TRUE(std::holds_alternative<NoRecord>(records().update(changed("t1", "beta", 70), version)));
  EXPECT_GT(versionOf(records().create(changed("t1", "alpha", 70))), version) << "a new record";
}

TEST_P(RepeatedCalls, TheIdOfAChangeIsStoredWithTheRecord) {
  if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
  constexpr CallId kLargest = ~CallId{0};
  const std::uint64_t version = versionOf(records().create(changed("t1", "alpha", kLargest)));
  reopen();
  EXPECT_EQ(versionOf(records().create(changed("t1", "alpha", kLargest))), version);
  EXPECT_EQ(records().changedSince("template", 0).changed.at(0).change, 0U);
}

}  // namespace jobq::testkit
