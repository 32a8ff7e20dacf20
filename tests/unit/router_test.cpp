// Tests of the route for a method and a path (core/http/api/router.h).
#include "core/http/api/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jobq {
namespace {

using testing::ElementsAre;

class RouterTest : public testing::Test {
 protected:
  void add(std::vector<std::string> methods, const std::string& pattern) {
    Route route{.scope = Scope::client};
    route.methods = std::move(methods);
    route.pattern = pattern;
    router_.add(std::move(route));
  }

  /// Returns the calls of all rows.
  std::vector<std::string> calls() const {
    std::vector<std::string> calls;
    for (const Router::Row& row : router_.rows()) calls.push_back(row.call);
    return calls;
  }

  /// Returns the pattern of the route, "no path", or "use <methods>".
  std::string find(const std::string& method, const std::string& path) {
    auto found = router_.find(method, path);
    params_.clear();
    if (auto* match = std::get_if<Router::Match>(&found)) {
      params_ = std::move(match->params);
      return match->route->pattern;
    }
    if (const auto* wrong = std::get_if<Router::WrongMethod>(&found)) return "use " + wrong->allow;
    return "no path";
  }

  using Params = std::map<std::string, std::string>;
  Router router_;
  Params params_;
};

TEST_F(RouterTest, FindsARouteByMethodAndPath) {
  add({"GET"}, "/ping");
  add({"POST"}, "/v2/{endpoint}/run");
  EXPECT_EQ(find("GET", "/ping"), "/ping");
  EXPECT_EQ(find("POST", "/v2/my-ep/run"), "/v2/{endpoint}/run");
  EXPECT_EQ(params_, (Params{{"endpoint", "my-ep"}}));
}

TEST_F(RouterTest, ReadsEachPlaceholder) {
  add({"GET"}, "/v2/{endpoint}/status/{id}");
  EXPECT_EQ(find("GET", "/v2/e/status/j-1"), "/v2/{endpoint}/status/{id}");
  EXPECT_EQ(params_, (Params{{"endpoint", "e"}, {"id", "j-1"}}));
}

TEST_F(RouterTest, ReturnsNoPathForAnUnknownRoute) {
  add({"GET"}, "/v2/{endpoint}/status/{id}");
  for (const char* path : {"", "/", "/v2", "/v2/e/status", "/v2/e/status/j/x", "/v2/e/Status/j", "/v1/e/status/j",
                           "/v2/e/status/j/", "//v2/e/status/j", "v2/e/status/j/x"}) {
    EXPECT_EQ(find("GET", path), "no path") << path;
  }
}

TEST_F(RouterTest, APlaceholderIsNeverEmpty) {
  add({"GET"}, "/v2/{endpoint}/health");
  EXPECT_EQ(find("GET", "/v2//health"), "no path");
}

TEST_F(RouterTest, ASegmentOfAPathWithoutARouteMayChangeTheRefusal) {
  struct Change final : RefusalChange {
    RouteResult answer(ApiRequest&, ApiResponse refusal) const override { return refusal; }
  };
  EXPECT_EQ(router_.refusalsOf("/v2/e/take/"), nullptr);
  const auto change = std::make_shared<Change>();
  router_.changeRefusals({"take", "stop"}, change);
  for (const char* path : {"/v2/e/take/", "/v2/e/take", "/v2/e/take&n=1", "/v2//take/w", "//v2/e/stop/w", "/stop"}) {
    EXPECT_EQ(router_.refusalsOf(path), change.get()) << path;
  }
  for (const char* path : {"", "/", "/v2/e/takes/w", "/v2/e/status/a&take", "/v2/e/xtake"}) {
    EXPECT_EQ(router_.refusalsOf(path), nullptr) << path;
  }
}

TEST_F(RouterTest, TheRootIsASeparatePath) {
  add({"GET"}, "/");
  EXPECT_EQ(find("GET", "/"), "/");
  EXPECT_EQ(find("GET", "/x"), "no path");
}

TEST_F(RouterTest, NamesAllMethodsOfAPathWhenTheMethodIsWrong) {
  add({"GET"}, "/v1/keys/{id}");
  add({"PATCH", "POST"}, "/v1/keys/{id}");
  add({"DELETE"}, "/v1/other/{id}");
  EXPECT_EQ(find("PUT", "/v1/keys/k"), "use GET, HEAD, PATCH, POST");
  EXPECT_EQ(find("get", "/v1/keys/k"), "use GET, HEAD, PATCH, POST") << "methods differ by case";
}

TEST_F(RouterTest, AHeadIsAGet) {
  add({"GET"}, "/ping");
  add({"POST"}, "/only/post");
  EXPECT_EQ(find("HEAD", "/ping"), "/ping");
  EXPECT_EQ(find("HEAD", "/only/post"), "use POST");
}

TEST_F(RouterTest, TheFirstAddedRouteCounts) {
  add({"GET"}, "/v1/webhooks/secret");
  add({"GET", "POST"}, "/v1/webhooks/{id}");
  EXPECT_EQ(find("GET", "/v1/webhooks/secret"), "/v1/webhooks/secret");
  EXPECT_EQ(find("POST", "/v1/webhooks/secret"), "/v1/webhooks/{id}") << "only the later route has the method";
  EXPECT_EQ(find("GET", "/v1/webhooks/w"), "/v1/webhooks/{id}");
}

TEST_F(RouterTest, ListsALineForEachMethod) {
  add({"GET", "DELETE"}, "/v1/keys/{id}");
  add({"POST"}, "/v1/keys");
  EXPECT_THAT(calls(), ElementsAre("GET /v1/keys/{id}", "DELETE /v1/keys/{id}", "POST /v1/keys"));
}

TEST_F(RouterTest, ATailMatchesAtLeastOneSegment) {
  add({"POST"}, "/v2/{endpoint}/openai/{route...}");
  add({"GET"}, "/v2/{endpoint}/openai/{route...}");
  EXPECT_EQ(find("GET", "/v2/a/openai/v1/models/x"), "/v2/{endpoint}/openai/{route...}");
  EXPECT_EQ(params_, (Params{{"endpoint", "a"}, {"route", "v1/models/x"}}));
  EXPECT_EQ(find("POST", "/v2/a/openai/v1"), "/v2/{endpoint}/openai/{route...}");
  EXPECT_EQ(params_.at("route"), "v1");
  EXPECT_EQ(find("GET", "/v2/a/openai"), "no path");
  EXPECT_EQ(find("GET", "/v2/a/openai/"), "no path");
  EXPECT_EQ(find("DELETE", "/v2/a/openai/v1"), "use POST, GET, HEAD");
  EXPECT_THAT(calls(), ElementsAre("POST /v2/{endpoint}/openai/{route}", "GET /v2/{endpoint}/openai/{route}"));
}

}  // namespace
}  // namespace jobq
