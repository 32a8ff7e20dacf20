// Compares the description of the API with the routes of the server: the description has every route and no other
// route.
#include <algorithm>
#include <cctype>
#include <set>

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

  /// Returns "GET /v1/keys" and so on, for each operation of the text.
  static std::set<std::string> operations(const std::string& text) {
    std::set<std::string> found;
    const auto paths = read(text).find("paths");
    EXPECT_TRUE(paths);
    for (const json::Member& path : read(paths->raw).members) {
      for (const json::Member& member : read(path.value.raw).members) {
        std::string method = json::decode(member.key);
        if (method == "parameters") continue;
        std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::toupper(c); });
        found.insert(method + " " + json::decode(path.key));
      }
    }
    return found;
  }
};

// core/http/API.md, "The process": GET /openapi.json describes the API and needs no key.
TEST_F(ServerOpenapiTest, DescribesEveryRouteAndNoOther) {
  open("storage = memory\n");
  const Answer answer = callWith("", "GET", "/openapi.json");
  ASSERT_EQ(answer.status, 200);
  const std::vector<std::string> routes = application_->routes();
  EXPECT_EQ(operations(answer.body), std::set<std::string>(routes.begin(), routes.end()));
}

}  // namespace
