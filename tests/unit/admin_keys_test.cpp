// Tests of the admin keys: making the first key, and keeping at least one (core/auth/api_keys.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

#include "api_keys_fixture.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class AdminKeysTest : public test::ApiKeysTest {
 protected:
  std::string createAdmin() {
    ApiKey key = keyFor({"admin"});
    keys_->create(key);
    return key.id;
  }
};

TEST_F(AdminKeysTest, TheFirstStartMakesAnAdminKeyReadableByTheOwnerOnly) {
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

TEST_F(AdminKeysTest, OnlyOneOfTwoStartingNodesMakesTheKey) {
  const auto other = node();
  const std::filesystem::path theirs = file_.string() + ".other";
  storage_.faults.hold("records.list");
  auto late = std::async(std::launch::async, [&] { keys_->bootstrap(file_); });
  const bool isHeld = holdsSoon([&] { return storage_.faults.isHolding(); });
  other->bootstrap(theirs);
  storage_.faults.letGo();
  late.get();
  ASSERT_TRUE(isHeld) << "the late node has not found the storage empty";
  EXPECT_EQ(other->list().size(), 1U);
  EXPECT_TRUE(std::filesystem::exists(theirs));
  EXPECT_FALSE(std::filesystem::exists(file_)) << "the key of the late node is in no storage";
  EXPECT_THAT(storage_.log.text(), HasSubstr("another node has made the admin key"));
}

TEST_F(AdminKeysTest, AnAdminMayBringTheFirstKey) {
  const std::string secret(32, 'k');
  std::ofstream(file_) << secret << " \r\n";
  keys_->bootstrap(file_);
  EXPECT_TRUE(opens(secret, Scope::admin, ""));
}

TEST_F(AdminKeysTest, ATooShortFirstKeyIsRefused) {
  std::ofstream(file_) << std::string(31, 'k') << "\n";
  EXPECT_THROW(keys_->bootstrap(file_), ConfigError);
  EXPECT_THAT(keys_->list(), IsEmpty());
}

TEST_F(AdminKeysTest, AStorageWithKeysGetsNoFurtherKey) {
  create(keyFor({"client"}));
  keys_->bootstrap(file_);
  EXPECT_FALSE(std::filesystem::exists(file_));
  EXPECT_EQ(keys_->list().size(), 1U);
}

TEST_F(AdminKeysTest, ARevokedKeyIsNotTakenInAgain) {
  keys_->bootstrap(file_);
  const std::string dead = secretOfFile();
  storage_->records().remove("key", keys_->list().at(0)->id);
  keys_ = node();
  keys_->bootstrap(file_);
  EXPECT_NE(secretOfFile(), dead);
  EXPECT_FALSE(opens(dead, Scope::admin, ""));
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("was revoked")));
}

TEST_F(AdminKeysTest, AStorageWithoutALastingAdminKeyIsAWarning) {
  create(keyFor({"admin"}));
  keys_->bootstrap(file_);
  EXPECT_THAT(storage_.log.lines(), IsEmpty());
  storage_->records().remove("key", keys_->list().at(0)->id);
  create(keyFor({"client"}));
  std::ofstream(file_) << std::string(32, 'k') << "\n";
  keys_->bootstrap(file_);
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("is not a key of this server")));
  EXPECT_THAT(storage_.log.lines(), Contains(HasSubstr("--reset-admin-key")));
  keys_->resetAdminKey(file_);
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
}

TEST_F(AdminKeysTest, AResetMakesAnAdminKeyAndRevokesTheKeyOfTheFile) {
  keys_->bootstrap(file_);
  const std::string former = secretOfFile();
  const std::string client = create(keyFor({"client"}));
  keys_->resetAdminKey(file_);
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
  EXPECT_FALSE(opens(former, Scope::admin, ""));
  EXPECT_TRUE(opens(client));
}

TEST_F(AdminKeysTest, AnInterruptedResetIsCompletedByTheNext) {
  keys_->bootstrap(file_);
  const std::string former = secretOfFile();
  create(keyFor({"client"}));
  storage_.faults.failNext("records.create");
  EXPECT_THROW(keys_->resetAdminKey(file_), StorageError);
  keys_->resetAdminKey(file_);
  EXPECT_TRUE(opens(secretOfFile(), Scope::admin, ""));
  EXPECT_FALSE(opens(former, Scope::admin, "")) << "the former key may be known to strangers";
}

TEST_F(AdminKeysTest, TheLastAdminKeyIsNotRevoked) {
  ApiKey admin = keyFor({"admin"});
  const std::string secret = keys_->create(admin);
  ApiKey bound = keyFor({"admin"}, {"ep"});
  keys_->create(bound);
  ApiKey ending = keyFor({"admin"});
  ending.expiresAt = storage_.clock.now() + Millis(3'600'000);
  keys_->create(ending);
  EXPECT_EQ(keys_->revoke(admin.id), Revocation::lastAdminKey) << "expiring and bound keys do not count";
  EXPECT_TRUE(opens(secret, Scope::admin, ""));
  EXPECT_EQ(keys_->revoke(bound.id), Revocation::revoked);
  EXPECT_EQ(keys_->revoke(ending.id), Revocation::revoked);
  ApiKey other = keyFor({"admin", "client"});
  keys_->create(other);
  EXPECT_EQ(keys_->revoke(admin.id), Revocation::revoked);
  EXPECT_EQ(keys_->revoke(other.id), Revocation::lastAdminKey);
}

TEST_F(AdminKeysTest, AnExpiredAdminKeyMayBeRevoked) {
  ApiKey expired = keyFor({"admin"});
  expired.expiresAt = storage_.clock.now() + Millis(1'000);
  keys_->create(expired);
  EXPECT_EQ(keys_->revoke(expired.id), Revocation::lastAdminKey);
  storage_.clock.advance(Millis(1'000));
  EXPECT_EQ(keys_->revoke(expired.id), Revocation::revoked);
}

TEST_F(AdminKeysTest, TwoRevocationsOnTwoNodesLeaveOneAdminKey) {
  const std::string one = createAdmin();
  const std::string two = createAdmin();
  storage_.faults.hold("records.list");  // the first call has marked its key and counts the other keys
  auto first = std::async(std::launch::async, [&] { return keys_->revoke(one); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); })) << "the other keys were not counted";
  EXPECT_EQ(node()->revoke(two), Revocation::lastAdminKey);
  storage_.faults.letGo();
  ASSERT_EQ(first.wait_for(test::kSoon), std::future_status::ready) << "the call did not end";
  EXPECT_EQ(first.get(), Revocation::revoked);
  EXPECT_EQ(keys_->list().size(), 1U);
}

// A mark is removed only by the revocation that set the mark: with the mark removed by a repeated call, two keys could
// count each other as the remaining admin key.
TEST_F(AdminKeysTest, ARepeatedRevocationTakesNoMarkAway) {
  const std::string one = createAdmin();
  const std::string two = createAdmin();
  storage_.faults.hold("records.list");
  auto first = std::async(std::launch::async, [&] { return keys_->revoke(one); });
  ASSERT_TRUE(holdsSoon([this] { return storage_.faults.isHolding(); })) << "the other keys were not counted";
  EXPECT_EQ(node()->revoke(one), Revocation::underWay);
  EXPECT_EQ(node()->revoke(two), Revocation::lastAdminKey);
  storage_.faults.letGo();
  ASSERT_EQ(first.wait_for(test::kSoon), std::future_status::ready) << "the call did not end";
  EXPECT_EQ(first.get(), Revocation::revoked);
  EXPECT_EQ(keys_->list().size(), 1U);
}

TEST_F(AdminKeysTest, TheMarkOfAFailedRevocationEndsAfterAMinute) {
  const std::string one = createAdmin();
  const std::string two = createAdmin();
  storage_.faults.failNext("records.remove");
  EXPECT_THROW(keys_->revoke(one), StorageError);
  EXPECT_EQ(keys_->revoke(two), Revocation::lastAdminKey) << "the first revocation may still be under way";
  EXPECT_EQ(keys_->revoke(one), Revocation::underWay);
  storage_.clock.advance(Millis(60'000));
  EXPECT_EQ(keys_->revoke(two), Revocation::revoked);
}

}  // namespace
}  // namespace jobq
