// Tests of API keys: the calls open to each key, on each node, and the time of the last use (core/auth/api_keys.h).
#include "core/auth/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "api_keys_fixture.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using ApiKeysTest = test::ApiKeysTest;

TEST_F(ApiKeysTest, TheSecretIsNotStored) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto record = storage_->records().find("key", key.id);
  ASSERT_TRUE(record);
  EXPECT_THAT(record->body, Not(HasSubstr(secret.substr(5))));
  EXPECT_THAT(record->body, HasSubstr(key.digest));
}

TEST_F(ApiKeysTest, ADamagedKeyIsUselessAndTheGoodKeysStayInUse) {
  ApiKey damaged = keyFor({"admin"});
  const std::string lost = keys_->create(damaged);
  const std::string good = create(keyFor({"client"}));
  const auto record = storage_->records().find("key", damaged.id);
  ASSERT_TRUE(record);
  Record broken = *record;
  broken.body = R"({"name":7})";
  ASSERT_TRUE(std::holds_alternative<Stored>(storage_->records().update(broken, record->version)));
  storage_.clock.advance(Millis(5'000));
  EXPECT_TRUE(opens(good));
  EXPECT_FALSE(opens(lost));
  EXPECT_TRUE(node()->authenticate(good, Scope::client, "ep")) << "a new node accepts the good key";
  EXPECT_EQ(keys_->list().size(), 1U);
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("keys.damaged: the record of key " + damaged.id)));
  node()->bootstrap(file_);
  EXPECT_FALSE(std::filesystem::exists(file_)) << "a store of damaged keys gets no new admin key";
  EXPECT_EQ(keys_->revoke(damaged.id), Revocation::revoked);
}

TEST_F(ApiKeysTest, TwoKeysAreNeverTheSame) { EXPECT_NE(create(keyFor({"client"})), create(keyFor({"client"}))); }

TEST_F(ApiKeysTest, TheHeaderHoldsTheKeyWithOrWithoutBearer) {
  const std::string secret = create(keyFor({"client"}));
  for (const std::string& header :
       {secret, "Bearer " + secret, "bearer " + secret, "BEARER   " + secret + "  ", " " + secret}) {
    EXPECT_TRUE(opens(header)) << header;
  }
  for (const std::string& header :
       {std::string(), std::string("Bearer "), "Basic " + secret, secret + "x", secret.substr(1), "Bearer" + secret}) {
    EXPECT_FALSE(opens(header)) << header;
  }
}

TEST_F(ApiKeysTest, AScopeOpensTheCallsOfTheScopeAndAdminOpensAll) {
  const std::string client = create(keyFor({"client"}));
  const std::string both = create(keyFor({"client", "worker"}));
  const std::string admin = create(keyFor({"admin"}));
  const std::string none = create(keyFor({}));
  EXPECT_TRUE(opens(client, Scope::client));
  EXPECT_FALSE(opens(client, Scope::worker));
  EXPECT_FALSE(opens(client, Scope::admin));
  EXPECT_TRUE(opens(both, Scope::worker));
  EXPECT_FALSE(opens(both, Scope::admin));
  for (const Scope scope : {Scope::client, Scope::worker, Scope::admin}) {
    EXPECT_TRUE(opens(admin, scope));
    EXPECT_FALSE(opens(none, scope));
  }
}

TEST_F(ApiKeysTest, AKeyOfSomeEndpointsOpensOnlyTheListedEndpoints) {
  for (const char* scope : {"client", "admin"}) {
    const std::string secret = create(keyFor({scope}, {"one", "two"}));
    EXPECT_TRUE(opens(secret, Scope::client, "one"));
    EXPECT_TRUE(opens(secret, Scope::client, "two"));
    EXPECT_FALSE(opens(secret, Scope::client, "on"));
    EXPECT_FALSE(opens(secret, Scope::client, "three"));
    EXPECT_FALSE(opens(secret, Scope::client, "")) << "the call belongs to no endpoint";
  }
}

TEST_F(ApiKeysTest, AKeyEndsAtTheMomentOfTheExpiry) {
  ApiKey key = keyFor({"client"});
  key.expiresAt = storage_.clock.now() + Millis(5'000);
  const std::string secret = keys_->create(key);
  storage_.clock.advance(Millis(4'999));
  EXPECT_TRUE(opens(secret));
  storage_.clock.advance(Millis(1));
  EXPECT_FALSE(opens(secret));
}

TEST_F(ApiKeysTest, ExpiryGoesByTheTimeOfDay) {
  ApiKey key = keyFor({"client"});
  key.expiresAt = storage_.clock.now() + Millis(3'600'000);
  const std::string secret = keys_->create(key);
  wall_.ahead = Millis(3'600'000);
  EXPECT_FALSE(opens(secret)) << "the machine's time was set, or the machine was suspended";
  wall_.ahead = Millis(3'599'999);
  EXPECT_TRUE(opens(secret));
}

TEST_F(ApiKeysTest, ListShowsTheCreatedKeys) {
  ApiKey key = keyFor({"client", "worker"}, {"one"});
  key.expiresAt = storage_.clock.now() + Millis(1'000);
  keys_->create(key);
  const auto listed = keys_->list();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]->id, key.id);
  EXPECT_EQ(listed[0]->name, "a test's");
  EXPECT_EQ(listed[0]->scopes, key.scopes);
  EXPECT_EQ(listed[0]->endpoints, key.endpoints);
  EXPECT_EQ(listed[0]->createdAt, storage_.clock.now());
  EXPECT_EQ(listed[0]->expiresAt, key.expiresAt);
  EXPECT_FALSE(listed[0]->lastUsedAt);
}

TEST_F(ApiKeysTest, ARevokedKeyIsUselessAtOnceOnTheRevokingNode) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const ApiKeyPtr held = keys_->authenticate(secret, Scope::client, "ep");
  EXPECT_EQ(keys_->revoke(key.id), Revocation::revoked);
  EXPECT_FALSE(opens(secret));
  EXPECT_EQ(held->id, key.id) << "a running call keeps the key";
  EXPECT_EQ(keys_->revoke(key.id), Revocation::noSuchKey);
}

TEST_F(ApiKeysTest, ASecondNodeFollowsWithinASecond) {
  const auto other = node();
  ApiKey key = keyFor({"client"});
  EXPECT_EQ(other->authenticate("nothing", Scope::client, "ep"), nullptr);
  const std::string secret = keys_->create(key);
  storage_.clock.advance(Millis(1'000));
  EXPECT_NE(other->authenticate(secret, Scope::client, "ep"), nullptr);
  keys_->revoke(key.id);
  storage_.clock.advance(Millis(1'000));
  EXPECT_EQ(other->authenticate(secret, Scope::client, "ep"), nullptr);
}

TEST_F(ApiKeysTest, AFailingStorageIsBridgedForASecondAndNoLonger) {
  const std::string secret = create(keyFor({"client"}));
  ASSERT_TRUE(opens(secret));
  storage_.faults.failOperation("records.changedSince");
  storage_.clock.advance(Millis(999));
  EXPECT_TRUE(opens(secret));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("keys.reload")));
  storage_.clock.advance(Millis(1));
  EXPECT_THROW((void)opens(secret), StorageError) << "a revocation on a different node could have been missed";
  storage_.faults.heal();
  EXPECT_TRUE(opens(secret));
}

TEST_F(ApiKeysTest, ARevocationCountsAlsoIfTheStorageFailsRightAfterwards) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  ASSERT_TRUE(opens(secret));
  storage_.faults.failOperation("records.changedSince");
  EXPECT_EQ(keys_->revoke(key.id), Revocation::revoked);
  EXPECT_THROW((void)opens(secret), StorageError);
  storage_.faults.heal();
  EXPECT_FALSE(opens(secret));
}

TEST_F(ApiKeysTest, AnOlderAnswerOfTheStorageDoesNotBringARevokedKeyBack) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  storage_.clock.advance(Millis(1'000));
  storage_.faults.hold("records.changedSince");
  auto slow = std::async(std::launch::async, [&] { return opens(secret); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); })) << "the list was not asked for";
  EXPECT_EQ(keys_->revoke(key.id), Revocation::revoked);
  storage_.faults.letGo();
  ASSERT_EQ(slow.wait_for(test::kSoon), std::future_status::ready) << "the call did not end";
  EXPECT_TRUE(slow.get()) << "the call began before the revocation";
  EXPECT_FALSE(opens(secret));
}

TEST_F(ApiKeysTest, OnlyChangedKeysAreRead) {
  const std::string secret = create(keyFor({"client"}));
  storage_.faults.failOperation("records.list");
  storage_.clock.advance(Millis(1'000));
  EXPECT_TRUE(opens(secret));
}

TEST_F(ApiKeysTest, ARevocationCountsWithoutATrace) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto other = node();
  EXPECT_NE(other->authenticate(secret, Scope::client, "ep"), nullptr);
  keys_->revoke(key.id);
  storage_.clock.advance(Millis(25 * 3'600'000));
  (void)storage_->leases().sweep(100);  // the sweep forgets removals older than a day
  EXPECT_EQ(other->authenticate(secret, Scope::client, "ep"), nullptr);
}

TEST_F(ApiKeysTest, ACallWritesNothing) {
  const std::string secret = create(keyFor({"client"}));
  const auto calls = storage_.faults.calls();
  EXPECT_TRUE(opens(secret));
  EXPECT_EQ(storage_.faults.calls(), calls) << "the thread of the call would wait for the writer";
}

TEST_F(ApiKeysTest, TheLastUseIsStoredOnceAMinute) {
  const std::string secret = create(keyFor({"client"}));
  const auto lastUseAfter = [&](Millis pause) {
    storage_.clock.advance(pause);
    EXPECT_TRUE(opens(secret));
    keys_->storeUses();
    return keys_->list()[0]->lastUsedAt;
  };
  const Instant first = storage_.clock.now();
  EXPECT_EQ(lastUseAfter(Millis(0)), first);
  EXPECT_EQ(lastUseAfter(Millis(59'000)), first);
  EXPECT_EQ(lastUseAfter(Millis(1'000)), first + Millis(60'000));
  keys_ = node();
  EXPECT_EQ(lastUseAfter(Millis(59'000)), first + Millis(60'000)) << "the former process has stored a last use";
}

TEST_F(ApiKeysTest, AStepStoresABoundedNumberOfUses) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(opens(create(keyFor({"client"}))));
  const auto stored = [this] {
    const auto keys = keys_->list();
    return std::count_if(keys.begin(), keys.end(), [](const ApiKeyPtr& key) { return key->lastUsedAt.has_value(); });
  };
  keys_->storeUses();
  EXPECT_EQ(stored(), 64);
  keys_->storeUses();
  EXPECT_EQ(stored(), 100);
}

TEST_F(ApiKeysTest, EachKeysUseHasATurn) {
  std::vector<std::string> secrets;
  for (int i = 0; i < 100; ++i) secrets.push_back(create(keyFor({"client"})));
  for (int step = 0; step < 2; ++step) {
    for (const std::string& secret : secrets) EXPECT_TRUE(opens(secret));
    keys_->storeUses();
    storage_.clock.advance(Millis(60'000));  // every key is due again
  }
  for (const ApiKeyPtr& key : keys_->list()) EXPECT_TRUE(key->lastUsedAt) << key->id;
}

TEST_F(ApiKeysTest, ARefusedCallIsNoUse) {
  const std::string secret = create(keyFor({"client"}));
  EXPECT_FALSE(opens(secret, Scope::admin));
  keys_->storeUses();
  EXPECT_FALSE(keys_->list()[0]->lastUsedAt);
}

TEST_F(ApiKeysTest, AFailedStoreOfALastUseIsLogged) {
  const std::string secret = create(keyFor({"client"}));
  storage_.faults.failOperation("records.update");
  EXPECT_TRUE(opens(secret));
  keys_->storeUses();
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("keys.lastUse")));
}

TEST_F(ApiKeysTest, AUseDoesNotStoreARevokedKeyAgain) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto other = node();
  EXPECT_EQ(other->authenticate("nothing", Scope::client, "ep"), nullptr);  // the node knows the key after this call
  keys_->revoke(key.id);
  EXPECT_NE(other->authenticate(secret, Scope::client, "ep"), nullptr) << "the node has not read the revocation yet";
  other->storeUses();
  EXPECT_THAT(keys_->list(), IsEmpty());
}

}  // namespace
}  // namespace jobq
