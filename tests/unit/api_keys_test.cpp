// Keys: how the first one is made, and which calls each of them opens (core/access/api_keys.h).
#include "core/access/api_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <future>

#include "core/base/data_dir.h"
#include "testkit/temporary_folder.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class ApiKeysTest : public testing::Test {
 protected:
  std::unique_ptr<ApiKeys> node() {
    return std::make_unique<ApiKeys>(storage_->records(), storage_.clock, wall_, storage_.log);
  }

  static ApiKey keyFor(std::vector<std::string> scopes, std::vector<std::string> endpoints = {}) {
    ApiKey key;
    key.name = "a test's";
    key.scopes = std::move(scopes);
    key.endpoints = std::move(endpoints);
    return key;
  }
  std::string create(ApiKey key) { return keys_->create(key); }
  bool opens(const std::string& authorization, Scope scope = Scope::client, const std::string& endpoint = "ep") {
    return keys_->authenticate(authorization, scope, endpoint) != nullptr;
  }

  std::string secretOfFile() const {
    const std::string text = readFile(file_).value();
    return text.substr(0, text.size() - 1);
  }

  // The time of day: that of the clock, unless a test sets it apart.
  struct Wall final : WallClock {
    explicit Wall(const Clock& clock) : clock_(clock) {}
    Instant now() const override { return clock_.now() + ahead; }
    Millis ahead{0};
    const Clock& clock_;
  };

  test::UnitStorage storage_;
  Wall wall_{storage_.clock};
  const testkit::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "admin.key";
  std::unique_ptr<ApiKeys> keys_ = node();
};

TEST_F(ApiKeysTest, TheFirstStartMakesAnAdminKeyThatOnlyItsOwnerReads) {
  keys_->bootstrap(file_);
  struct stat status {};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  std::string secret = readFile(file_).value();
  ASSERT_EQ(secret.back(), '\n');
  secret.pop_back();
  EXPECT_TRUE(opens("Bearer " + secret, Scope::admin, ""));
  EXPECT_THAT(storage_.log.text(), HasSubstr(file_.string()));
  EXPECT_THAT(storage_.log.text(), Not(HasSubstr(secret)));
}

TEST_F(ApiKeysTest, AnAdminMayBringTheFirstKey) {
  const std::string secret(32, 'k');
  std::ofstream(file_) << secret << " \r\n";
  keys_->bootstrap(file_);
  EXPECT_TRUE(opens(secret, Scope::admin, ""));
}

TEST_F(ApiKeysTest, AFirstKeyThatIsTooShortIsRefused) {
  std::ofstream(file_) << std::string(31, 'k') << "\n";
  EXPECT_THROW(keys_->bootstrap(file_), ConfigError);
  EXPECT_THAT(keys_->list(), IsEmpty());
}

TEST_F(ApiKeysTest, AStorageThatHasKeysGetsNoOtherOne) {
  create(keyFor({"client"}));
  keys_->bootstrap(file_);
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(keys_->list().size(), 1U);
}

TEST_F(ApiKeysTest, AKeyThatWasRevokedIsNotTakenInAgain) {
  keys_->bootstrap(file_);
  const std::string dead = secretOfFile();
  storage_->records().remove("key", keys_->list().at(0).id);
  keys_ = node();
  keys_->bootstrap(file_);
  EXPECT_NE(secretOfFile(), dead);
  EXPECT_FALSE(opens(dead, Scope::admin, ""));
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("was revoked")));
}

TEST_F(ApiKeysTest, AStorageWithoutALastingAdminKeyIsAWarning) {
  create(keyFor({"admin"}));
  keys_->bootstrap(file_);
  EXPECT_THAT(storage_.log.lines(), IsEmpty());
  storage_->records().remove("key", keys_->list().at(0).id);
  create(keyFor({"client"}));
  std::ofstream(file_) << std::string(32, 'k') << "\n";
  keys_->bootstrap(file_);
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("is no key of this server")));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("--reset-admin-key")));
  keys_->resetAdminKey(file_);
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
}

TEST_F(ApiKeysTest, AResetMakesAnAdminKeyAndRevokesTheOneOfTheFile) {
  keys_->bootstrap(file_);
  const std::string former = secretOfFile();
  const std::string client = create(keyFor({"client"}));
  keys_->resetAdminKey(file_);
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
  EXPECT_FALSE(opens(former, Scope::admin, ""));
  EXPECT_TRUE(opens(client));
}

TEST_F(ApiKeysTest, TheSecretIsNotStored) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto record = storage_->records().find("key", key.id);
  ASSERT_TRUE(record);
  EXPECT_THAT(record->body, Not(HasSubstr(secret.substr(5))));
  EXPECT_THAT(record->body, HasSubstr(key.digest));
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

TEST_F(ApiKeysTest, AScopeOpensItsOwnCallsAndAdminOpensAll) {
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

TEST_F(ApiKeysTest, AKeyOfSomeEndpointsOpensThoseAlone) {
  for (const char* scope : {"client", "admin"}) {
    const std::string secret = create(keyFor({scope}, {"one", "two"}));
    EXPECT_TRUE(opens(secret, Scope::client, "one"));
    EXPECT_TRUE(opens(secret, Scope::client, "two"));
    EXPECT_FALSE(opens(secret, Scope::client, "on"));
    EXPECT_FALSE(opens(secret, Scope::client, "three"));
    EXPECT_FALSE(opens(secret, Scope::client, "")) << "a call that belongs to no endpoint";
  }
}

TEST_F(ApiKeysTest, AKeyEndsAtTheMomentOfItsExpiry) {
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

TEST_F(ApiKeysTest, ListTellsWhatWasCreated) {
  ApiKey key = keyFor({"client", "worker"}, {"one"});
  key.expiresAt = storage_.clock.now() + Millis(1'000);
  keys_->create(key);
  const auto listed = keys_->list();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].id, key.id);
  EXPECT_EQ(listed[0].name, "a test's");
  EXPECT_EQ(listed[0].scopes, key.scopes);
  EXPECT_EQ(listed[0].endpoints, key.endpoints);
  EXPECT_EQ(listed[0].createdAt, storage_.clock.now());
  EXPECT_EQ(listed[0].expiresAt, key.expiresAt);
  EXPECT_FALSE(listed[0].lastUsedAt);
}

TEST_F(ApiKeysTest, ARevokedKeyOpensNothingMoreOnThisNode) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const ApiKeyPtr held = keys_->authenticate(secret, Scope::client, "ep");
  EXPECT_EQ(keys_->revoke(key.id), Revocation::revoked);
  EXPECT_FALSE(opens(secret));
  EXPECT_EQ(held->id, key.id) << "a call that is under way keeps its key";
  EXPECT_EQ(keys_->revoke(key.id), Revocation::noSuchKey);
}

TEST_F(ApiKeysTest, TheLastAdminKeyIsNotRevoked) {
  ApiKey admin = keyFor({"admin"});
  const std::string secret = keys_->create(admin);
  ApiKey bound = keyFor({"admin"}, {"ep"});
  keys_->create(bound);
  ApiKey ending = keyFor({"admin"});
  ending.expiresAt = storage_.clock.now() + Millis(3'600'000);
  keys_->create(ending);
  EXPECT_EQ(keys_->revoke(admin.id), Revocation::lastAdminKey) << "one that expires is no other one, nor a bound one";
  EXPECT_TRUE(opens(secret, Scope::admin, ""));
  EXPECT_EQ(keys_->revoke(bound.id), Revocation::revoked);
  EXPECT_EQ(keys_->revoke(ending.id), Revocation::revoked);
  ApiKey other = keyFor({"admin", "client"});
  keys_->create(other);
  EXPECT_EQ(keys_->revoke(admin.id), Revocation::revoked);
  EXPECT_EQ(keys_->revoke(other.id), Revocation::lastAdminKey);
}

TEST_F(ApiKeysTest, AnAdminKeyThatHasExpiredIsRevoked) {
  ApiKey expired = keyFor({"admin"});
  expired.expiresAt = storage_.clock.now() + Millis(1'000);
  keys_->create(expired);
  EXPECT_EQ(keys_->revoke(expired.id), Revocation::lastAdminKey);
  storage_.clock.advance(Millis(1'000));
  EXPECT_EQ(keys_->revoke(expired.id), Revocation::revoked);
}

TEST_F(ApiKeysTest, OfTwoRevocationsOnTwoNodesOneAdminKeyIsLeft) {
  ApiKey one = keyFor({"admin"});
  keys_->create(one);
  ApiKey two = keyFor({"admin"});
  keys_->create(two);
  storage_.faults.hold("records.list");  // the first one has marked its key and counts the others
  auto first = std::async(std::launch::async, [&] { return keys_->revoke(one.id); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); })) << "the other keys were not counted";
  EXPECT_EQ(node()->revoke(two.id), Revocation::lastAdminKey);
  storage_.faults.letGo();
  ASSERT_EQ(first.wait_for(test::kSoon), std::future_status::ready) << "the call did not end";
  EXPECT_EQ(first.get(), Revocation::revoked);
  EXPECT_EQ(keys_->list().size(), 1U);
}

TEST_F(ApiKeysTest, AnotherNodeFollowsWithinASecond) {
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

TEST_F(ApiKeysTest, AStorageThatFailsIsBridgedForASecondAndNoLonger) {
  const std::string secret = create(keyFor({"client"}));
  ASSERT_TRUE(opens(secret));
  storage_.faults.failVerb("records.changedSince");
  storage_.clock.advance(Millis(999));
  EXPECT_TRUE(opens(secret));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("keys.reload")));
  storage_.clock.advance(Millis(1));
  EXPECT_THROW((void)opens(secret), StorageError) << "a revocation on another node could have been missed";
  storage_.faults.heal();
  EXPECT_TRUE(opens(secret));
}

TEST_F(ApiKeysTest, ARevocationCountsAlsoWhenTheStorageFailsRightAfterIt) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  ASSERT_TRUE(opens(secret));
  storage_.faults.failVerb("records.changedSince");
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
  EXPECT_TRUE(slow.get()) << "it began before the revocation";
  EXPECT_FALSE(opens(secret));
}

TEST_F(ApiKeysTest, OnlyWhatHasChangedIsRead) {
  const std::string secret = create(keyFor({"client"}));
  storage_.faults.failVerb("records.list");
  storage_.clock.advance(Millis(1'000));
  EXPECT_TRUE(opens(secret));
}

TEST_F(ApiKeysTest, ARevocationCountsWhenItsTraceIsGone) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto other = node();
  EXPECT_NE(other->authenticate(secret, Scope::client, "ep"), nullptr);
  keys_->revoke(key.id);
  storage_.clock.advance(Millis(25 * 3'600'000));
  (void)storage_->leases().sweep(100);  // forgets removals of more than a day ago
  EXPECT_EQ(other->authenticate(secret, Scope::client, "ep"), nullptr);
}

TEST_F(ApiKeysTest, ACallWritesNothing) {
  const std::string secret = create(keyFor({"client"}));
  const auto calls = storage_.faults.calls();
  EXPECT_TRUE(opens(secret));
  EXPECT_EQ(storage_.faults.calls(), calls) << "its thread would wait for the writer";
}

TEST_F(ApiKeysTest, TheLastUseIsStoredOnceAMinute) {
  const std::string secret = create(keyFor({"client"}));
  const auto lastUseAfter = [&](Millis pause) {
    storage_.clock.advance(pause);
    EXPECT_TRUE(opens(secret));
    keys_->storeUses();
    return keys_->list()[0].lastUsedAt;
  };
  const Instant first = storage_.clock.now();
  EXPECT_EQ(lastUseAfter(Millis(0)), first);
  EXPECT_EQ(lastUseAfter(Millis(59'000)), first);
  EXPECT_EQ(lastUseAfter(Millis(1'000)), first + Millis(60'000));
  keys_ = node();
  EXPECT_EQ(lastUseAfter(Millis(59'000)), first + Millis(60'000)) << "another process has stored one";
}

TEST_F(ApiKeysTest, AStepStoresABoundedNumberOfUses) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(opens(create(keyFor({"client"}))));
  const auto stored = [this] {
    const auto keys = keys_->list();
    return std::count_if(keys.begin(), keys.end(), [](const ApiKey& key) { return key.lastUsedAt.has_value(); });
  };
  keys_->storeUses();
  EXPECT_EQ(stored(), 64);
  keys_->storeUses();
  EXPECT_EQ(stored(), 100);
}

TEST_F(ApiKeysTest, ARefusedCallIsNoUse) {
  const std::string secret = create(keyFor({"client"}));
  EXPECT_FALSE(opens(secret, Scope::admin));
  keys_->storeUses();
  EXPECT_FALSE(keys_->list()[0].lastUsedAt);
}

TEST_F(ApiKeysTest, ALastUseThatCannotBeStoredIsALineOfTheLog) {
  const std::string secret = create(keyFor({"client"}));
  storage_.faults.failVerb("records.update");
  EXPECT_TRUE(opens(secret));
  keys_->storeUses();
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("keys.lastUse")));
}

TEST_F(ApiKeysTest, AUseOfARevokedKeyDoesNotStoreItAgain) {
  ApiKey key = keyFor({"client"});
  const std::string secret = keys_->create(key);
  const auto other = node();
  EXPECT_EQ(other->authenticate("nothing", Scope::client, "ep"), nullptr);  // from now on it knows the key
  keys_->revoke(key.id);
  EXPECT_NE(other->authenticate(secret, Scope::client, "ep"), nullptr) << "it has not heard of the revocation yet";
  other->storeUses();
  EXPECT_THAT(keys_->list(), IsEmpty());
}

}  // namespace
}  // namespace jobq
