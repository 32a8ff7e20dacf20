// Tests of the routes under /v1/keys without a socket (core/http/api/management/key_routes.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/auth/api_keys.h"
#include "core/base/clock.h"
#include "core/http/api/routes.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "route_fixture.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::HasSubstr;
using testing::Not;

class KeyRoutesTest : public testing::Test, protected test::RouteFixture {
 protected:
  KeyRoutesTest() { addKeyRoutes(router_, keys_, wall_); }

  /// Returns the text of a member of a JSON object.
  static std::string member(const std::string& body, std::string_view name) {
    const auto read = json::read(body);
    const auto* document = std::get_if<json::Document>(&read);
    const auto value = document == nullptr ? std::nullopt : document->find(name);
    return value ? json::toText(*value).value_or(std::string(value->raw)) : "no " + std::string(name);
  }
  std::string create(const std::string& body) { return call("POST", "/v1/keys", body).body; }

  test::UnitStorage storage_;
  const ClockAsWallClock wall_{storage_.clock};
  ApiKeys keys_{storage_->records(), storage_.clock, wall_, storage_.log};
};

TEST_F(KeyRoutesTest, ANewKeyIsShownOnceAndOpensTheCallsOfTheScopes) {
  const ApiResponse response =
      call("POST", "/v1/keys",
           R"({"name":"ci","scopes":["client","client"],"endpoints":["ep"],"expiresAt":"2026-01-01T00:01:00Z"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(scope_, Scope::admin);
  EXPECT_EQ(member(response.body, "name"), "ci");
  EXPECT_EQ(member(response.body, "scopes"), R"(["client"])");
  EXPECT_EQ(member(response.body, "endpoints"), R"(["ep"])");
  EXPECT_EQ(member(response.body, "createdAt"), "2026-01-01T00:00:00.000Z");
  EXPECT_EQ(member(response.body, "expiresAt"), "2026-01-01T00:01:00.000Z");
  EXPECT_EQ(member(response.body, "lastUsedAt"), "null");
  const std::string secret = member(response.body, "key");
  EXPECT_GE(secret.size(), 32U);
  const ApiKeyPtr known = keys_.authenticate("Bearer " + secret, Scope::client, "ep");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->id, member(response.body, "id"));
  EXPECT_FALSE(keys_.authenticate("Bearer " + secret, Scope::client, "other"));
  EXPECT_FALSE(keys_.authenticate("Bearer " + secret, Scope::admin, ""));
  storage_.clock.advance(Millis(60'000));
  EXPECT_FALSE(keys_.authenticate("Bearer " + secret, Scope::client, "ep")) << "the key has expired";
  EXPECT_THAT(call("GET", "/v1/keys").body, Not(HasSubstr(secret)));
}

TEST_F(KeyRoutesTest, TheListHasEachKeyWithoutTheSecret) {
  expectAnswer(call("GET", "/v1/keys"), 200, "[]");
  const std::string id = member(create(R"({"name":"a","scopes":["admin","worker"]})"), "id");
  expectAnswer(call("GET", "/v1/keys"), 200,
               R"([{"id":")" + id + R"(","name":"a","scopes":["admin","worker"],"endpoints":[],)" +
                   R"("createdAt":"2026-01-01T00:00:00.000Z","expiresAt":null,"lastUsedAt":null}])");
  EXPECT_EQ(scope_, Scope::admin);
}

TEST_F(KeyRoutesTest, EachWrongFieldIsNamed) {
  expectAnswer(
      call("POST", "/v1/keys", "{}"), 400,
      R"({"message":"name is missing: give the key a name; )"
      R"(scopes must hold at least one of client, submit, read, monitor, worker, admin","errors":[)"
      R"({"field":"name","message":"name is missing: give the key a name"},)"
      R"({"field":"scopes","message":"scopes must hold at least one of client, submit, read, monitor, worker, admin"}]})");
  const auto refused = [this](const std::string& fields) {
    const ApiResponse response = call("POST", "/v1/keys", R"({"name":"n","scopes":["client"],)" + fields + "}");
    EXPECT_EQ(response.status, 400) << fields;
    return member(response.body, "message");
  };
  EXPECT_EQ(refused(R"("expiresAt":"2026-01-01T00:00:00Z")"),
            "expiresAt has passed already: name a time in the future");
  EXPECT_EQ(refused(R"("expiresAt":"tomorrow")"), "expiresAt must be a time like 2027-01-01T00:00:00Z");
  EXPECT_EQ(refused(R"("expiresAt":7)"), "expiresAt must be a time like 2027-01-01T00:00:00Z");
  EXPECT_EQ(refused(R"("endpoints":["a/b"])"), "endpoints holds a/b, which is not an endpoint id");
  EXPECT_EQ(refused(R"("endpoints":"ep")"), "endpoints must be an array of strings");
  EXPECT_THAT(refused(R"("scope":"admin")"),
              HasSubstr("scope is not a field of an API key; the nearest one is scopes"));
  EXPECT_THAT(refused(R"("id":"mine")"), HasSubstr("id"));
  EXPECT_THAT(refused(R"("name":"again")"), HasSubstr("name appears twice: send it once"));
  const ApiResponse scopes = call("POST", "/v1/keys", R"({"name":"n","scopes":["root"]})");
  EXPECT_EQ(scopes.status, 400);
  EXPECT_EQ(member(scopes.body, "message"), "scopes may hold client, submit, read, monitor, worker, admin, not root");
  const ApiResponse name =
      call("POST", "/v1/keys", R"({"name":")" + std::string(192, 'n') + R"(","scopes":["admin"]})");
  EXPECT_EQ(member(name.body, "message"), "name must be a string of 1 to 191 bytes");
  EXPECT_EQ(member(call("POST", "/v1/keys", "[]").body, "message"), "the body must be a JSON object");
  EXPECT_THAT(member(call("POST", "/v1/keys", "{").body, "message"), HasSubstr("the body is not valid JSON: "));
  expectAnswer(call("GET", "/v1/keys"), 200, "[]");
}

TEST_F(KeyRoutesTest, AKeyOfAnyScopeSeesItself) {
  const ApiResponse made = call("POST", "/v1/keys",
                                R"({"name":"ci","scopes":["monitor"],"endpoints":["ep"],)"
                                R"("expiresAt":"2026-01-01T00:01:00Z"})");
  for (const ScopeName& each : kScopeNames) {
    EXPECT_TRUE(keyFor({each.name}, {"ep"})->permits(RouteAccess::anyKey(), "")) << each.name;
  }
  key_ = keys_.authenticate(member(made.body, "key"), RouteAccess::anyKey(), "");
  ASSERT_TRUE(key_);
  expectAnswer(call("GET", "/v1/me"), 200,
               R"({"id":")" + key_->id +
                   R"(","name":"ci","scopes":["monitor"],"endpoints":["ep"],"expiresAt":"2026-01-01T00:01:00.000Z"})");
  EXPECT_EQ(scope_, RouteAccess::anyKey());
}

TEST_F(KeyRoutesTest, ARevokedKeyIsGone) {
  const std::string body = create(R"({"name":"n","scopes":["client"]})");
  const std::string id = member(body, "id");
  expectAnswer(call("DELETE", "/v1/keys/" + id), 204, "");
  EXPECT_EQ(scope_, Scope::admin);
  EXPECT_FALSE(keys_.authenticate(member(body, "key"), Scope::client, "ep"));
  expectAnswer(call("GET", "/v1/keys"), 200, "[]");
  expectAnswer(call("DELETE", "/v1/keys/" + id), 404,
               R"({"message":"there is no key with the id )" + id + R"(: list the keys"})");
}

TEST_F(KeyRoutesTest, TheLastAdminKeyStays) {
  const std::string first = member(create(R"({"name":"a","scopes":["admin"]})"), "id");
  (void)create(R"({"name":"b","scopes":["admin"],"expiresAt":"2027-01-01T00:00:00Z"})");
  expectAnswer(call("DELETE", "/v1/keys/" + first), 409,
               R"({"message":"the key is the last admin key: make another one that never expires, )"
               R"(and then revoke this one"})");
  (void)create(R"({"name":"c","scopes":["admin"]})");
  EXPECT_EQ(call("DELETE", "/v1/keys/" + first).status, 204);
}

TEST_F(KeyRoutesTest, AFailingStorageIsNoAnswer) {
  for (const char* operation : {"records.create", "records.changedSince"}) {
    storage_.faults.failOperation(operation);
    EXPECT_THROW((void)call(operation == std::string("records.changedSince") ? "GET" : "POST", "/v1/keys",
                            R"({"name":"n","scopes":["client"]})"),
                 StorageError)
        << operation;
    storage_.faults.heal();
  }
  expectAnswer(call("GET", "/v1/keys"), 200, "[]");
}

}  // namespace
}  // namespace jobq
