// Conformance: RecordStore (record_store.h) and WorkerStore (worker_store.h).
#pragma once

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

TEST_P(StorageSuite, WorkersOfLivingNodesAreSummed) {
  WorkerStore& workers = storage_->workers();
  WorkerCounts two;
  two.idle = 2;
  WorkerCounts one;
  one.running = 1;
  workers.beat("n1", std::vector<EndpointWorkers>{{"ep", two}, {"other", one}});
  workers.beat("n2", std::vector<EndpointWorkers>{{"ep", one}});
  EXPECT_EQ(workers.count("ep", "").idle, 2U);
  EXPECT_EQ(workers.count("ep", "").running, 1U);
  EXPECT_EQ(workers.count("ep", "n1").idle, 0U);
  EXPECT_EQ(workers.count("ep", "n1").running, 1U);
  clock_.advance(kBeatLife - Millis(1));
  workers.beat("n2", std::vector<EndpointWorkers>{});
  EXPECT_EQ(workers.count("ep", "").running, 0U) << "a beat replaces what was said before";
  clock_.advance(Millis(1));
  EXPECT_EQ(workers.count("ep", "").idle, 0U) << "n1 is silent for too long";
  auto nodes = workers.nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].node, "n1");
  EXPECT_FALSE(nodes[0].alive);
  EXPECT_TRUE(nodes[1].alive);
  clock_.advance(Millis(86'400'000));
  workers.beat("n3", std::vector<EndpointWorkers>{});
  nodes = workers.nodes();
  ASSERT_EQ(nodes.size(), 1U) << "forgotten after a day";
  EXPECT_EQ(nodes[0].node, "n3");
}

}  // namespace jobq::testkit
