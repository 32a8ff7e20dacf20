// Conformance: idempotency keys (sdk/include/jobq/job_store.h, Idempotency).
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AnIdempotencyKeyGivesTheFirstJobForADay) {
  const auto insert = [this](const JobId& id, const std::string& hash, const std::string& apiKey = "key",
                             const EndpointId& endpoint = "ep") {
    JobSpec job = spec(id, endpoint);
    job.apiKeyId = apiKey;
    job.policy.ttl = Millis(10'000);
    return storage_->jobs().insert(std::move(job), policy_, {Idempotency{"once", hash}});
  };
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("a", "h1")));
  const InsertResult again = insert("b", "h1");
  ASSERT_TRUE(std::holds_alternative<Duplicate>(again));
  EXPECT_EQ(std::get<Duplicate>(again).id, "a");
  EXPECT_FALSE(find("b"));
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(insert("c", "h2")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("d", "h1", "other key")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("e", "h1", "key", "other")));
  clock_.advance(kIdempotencyLife - Millis(1));
  (void)sweep();
  EXPECT_FALSE(find("a")) << "the record outlives the job";
  EXPECT_TRUE(std::holds_alternative<Duplicate>(insert("f", "h1")));
  clock_.advance(Millis(1));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("g", "h2")));
}

TEST_P(StorageSuite, AnIdempotencyRecordOutlivesPurgeCancelAndExpiry) {
  const auto insert = [this](const JobId& id, const std::string& key) {
    JobSpec job = spec(id);
    job.policy.ttl = Millis(10'000);
    return jobs().insert(std::move(job), policy_, {Idempotency{key, "h"}});
  };
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("purged", "k1")));
  EXPECT_EQ(jobs().purgeQueued("ep"), 1U);
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("cancelled", "k2")));
  (void)jobs().cancel({"ep", "cancelled"});
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("expired", "k3")));
  clock_.advance(Millis(10'000));
  sweepAll();
  for (const auto& [key, id] : {std::pair("k1", "purged"), std::pair("k2", "cancelled"), std::pair("k3", "expired")}) {
    const auto result = insert(std::string("new ") + key, key);
    ASSERT_TRUE(std::holds_alternative<Duplicate>(result)) << key;
    EXPECT_EQ(std::get<Duplicate>(result).id, id);
  }
  EXPECT_EQ(counts().inQueue, 0U);
}

TEST_P(StorageSuite, ASecondRequestNeitherRenewsNorReplacesTheRecord) {
  const auto insert = [this](const JobId& id, const std::string& hash) {
    return jobs().insert(spec(id), policy_, {Idempotency{"k", hash}});
  };
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("a", "h1")));
  clock_.advance(Millis(80'000'000));
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(insert("b", "h2")));
  EXPECT_TRUE(std::holds_alternative<Duplicate>(insert("c", "h1")));
  clock_.advance(Millis(6'400'001));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("d", "h2"))) << "a day after the first";
  const auto now = insert("e", "h2");
  ASSERT_TRUE(std::holds_alternative<Duplicate>(now));
  EXPECT_EQ(std::get<Duplicate>(now).id, "d");
  sweepAll();
  EXPECT_TRUE(std::holds_alternative<Duplicate>(insert("f", "h2")))
      << "a sweep of the old record leaves the new record";
}

TEST_P(StorageSuite, AnIdempotencyKeyIsFoundWithoutAnInsert) {
  const Idempotency same{"once", "h1"};
  const auto first = [this, &same](const EndpointId& endpoint = "ep", const std::string& apiKey = "key") {
    const auto answer = jobs().findByIdempotencyKey(endpoint, apiKey, same);
    const auto* existing = answer ? std::get_if<Duplicate>(&*answer) : nullptr;
    return existing != nullptr ? existing->id : JobId(answer ? "of another body" : "none");
  };
  const auto insert = [this](const JobId& id, const std::string& hash) {
    JobSpec job = spec(id);
    job.apiKeyId = "key";
    job.policy.ttl = Millis(10'000);
    return jobs().insert(std::move(job), policy_, {Idempotency{"once", hash}});
  };
  EXPECT_EQ(first(), "none") << "the endpoint has had no job";
  ASSERT_TRUE(std::holds_alternative<Inserted>(insert("a", "h1"))) << "a lookup stores no key";
  EXPECT_EQ(first(), "a");
  EXPECT_EQ(first("other"), "none");
  EXPECT_EQ(first("ep", "other key"), "none");
  EXPECT_FALSE(jobs().findByIdempotencyKey("ep", "key", {"Once", "h1"}));
  const auto conflict = jobs().findByIdempotencyKey("ep", "key", {"once", "h2"});
  ASSERT_TRUE(conflict);
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(*conflict));
  clock_.advance(kIdempotencyLife - Millis(1));
  sweepAll();
  EXPECT_FALSE(find("a"));
  EXPECT_EQ(first(), "a") << "the record outlives the job";
  clock_.advance(Millis(1));
  EXPECT_EQ(first(), "none") << "a day after the first call, whatever was asked meanwhile";
  ASSERT_TRUE(std::holds_alternative<Inserted>(insert("b", "h2")));
  EXPECT_EQ(first(), "of another body");
  while (jobs().remove("ep", 100) > 0) {
  }
  EXPECT_EQ(first(), "none") << "the endpoint is removed";
}

TEST_P(StorageSuite, SimilarKeysAreDifferent) {
  const auto insert = [this](const JobId& id, const std::string& apiKey, const std::string& key) {
    JobSpec job = spec(id);
    job.apiKeyId = apiKey;
    return jobs().insert(std::move(job), policy_, {Idempotency{key, "h"}});
  };
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("a", "ab", "c")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("b", "a", "bc")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("c", "ab", "C")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("d", "ab", "c ")));
  EXPECT_TRUE(std::holds_alternative<Duplicate>(insert("e", "ab", "c")));
}

}  // namespace jobq::testkit
