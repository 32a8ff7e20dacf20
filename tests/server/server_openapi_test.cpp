// Compares the description of the API with the routes of the server: the description has every route with its scopes,
// and no other route.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "server_fixture.h"

namespace {

using namespace jobq;

class ServerOpenapiTest : public ServerTest {
 protected:
  static json::Document read(std::string_view text) {
    auto document = json::read(text);
    EXPECT_TRUE(std::holds_alternative<json::Document>(document)) << text.substr(0, 100);
    return std::get<json::Document>(std::move(document));
  }

  /// Returns the scopes by "GET /v1/keys" and so on, for each operation of the text.
  static std::map<std::string, std::set<std::string>> operations(const std::string& text) {
    std::map<std::string, std::set<std::string>> found;
    const auto paths = read(text).find("paths");
    EXPECT_TRUE(paths);
    for (const json::Member& path : read(paths->raw).members) {
      for (const json::Member& member : read(path.value.raw).members) {
        std::string method = json::decode(member.key);
        if (method == "parameters") continue;
        std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::toupper(c); });
        found[method + " " + json::decode(path.key)] = roles(member.value);
      }
    }
    return found;
  }

  /// Returns the roles of an operation, which are the same for both forms of a key.
  static std::set<std::string> roles(const json::Value& operation) {
    const auto security = read(operation.raw).find("security");
    if (!security) return {"no security"};
    std::map<std::string, std::set<std::string>> byScheme{{"bearer", {}}, {"bareKey", {}}};
    for (const json::Value& requirement : read(security->raw).elements) {
      for (const json::Member& scheme : read(requirement.raw).members) {
        for (const json::Value& role : read(scheme.value.raw).elements) {
          byScheme.at(json::decode(scheme.key)).insert(json::decode(role.raw));
        }
      }
    }
    EXPECT_EQ(byScheme["bearer"], byScheme["bareKey"]);
    return byScheme["bearer"];
  }

  /// Returns the scopes of each route of the server.
  std::map<std::string, std::set<std::string>> routes() const {
    std::map<std::string, std::set<std::string>> found;
    for (const Router::Row& row : application_->routes()) {
      std::set<std::string>& scopes = found[row.call];
      for (const ScopeName& each : kScopeNames) {
        if (row.scope.permits(each.scope)) scopes.insert(each.name);
      }
    }
    return found;
  }
};

// core/http/API.md, "The process": GET /openapi.json describes the API and needs no key.
TEST_F(ServerOpenapiTest, DescribesEveryRouteWithItsScopesAndNoOther) {
  open("storage = memory\n");
  const Answer answer = callWith("", "GET", "/openapi.json");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(operations(answer.body), routes());
}

}  // namespace
