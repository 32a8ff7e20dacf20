// The scopes of every route: the table below has each route of the server, so that a new route needs a row here too.
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server_fixture.h"

namespace {

using namespace jobq;

/// The routes with the scopes of their keys. A route of `/v2/{endpoint}` stands for `/sdk/v2/{endpoint}` too. The word
/// `bound` means that keys bound to endpoints may call a route without an endpoint in the path.
constexpr std::pair<const char*, const char*> kScopes[] = {
    {"POST /v2/{endpoint}/run", "client submit"},
    {"POST /v2/{endpoint}/runsync", "client submit"},
    {"GET /v2/{endpoint}/status/{id}", "client submit read"},
    {"POST /v2/{endpoint}/status/{id}", "client submit read"},
    {"GET /v2/{endpoint}/status-sync/{id}", "client submit read"},
    {"POST /v2/{endpoint}/status-sync/{id}", "client submit read"},
    {"GET /v2/{endpoint}/stream/{id}", "client submit read"},
    {"POST /v2/{endpoint}/stream/{id}", "client submit read"},
    {"GET /v2/{endpoint}/logs/{id}", "client submit read"},
    {"POST /v2/{endpoint}/cancel/{id}", "client submit"},
    {"POST /v2/{endpoint}/retry/{id}", "client submit"},
    {"POST /v2/{endpoint}/purge-queue", "client"},
    {"POST /v2/{endpoint}/openai/{route}", "client submit"},
    {"GET /v2/{endpoint}/openai/{route}", "client submit"},
    {"GET /v2/{endpoint}/requests", "client read"},
    {"GET /v2/{endpoint}/health", "client read monitor"},
    {"GET /v2/{endpoint}/job-take/{worker}", "worker"},
    {"GET /v2/{endpoint}/job-take-batch/{worker}", "worker"},
    {"GET /v2/{endpoint}/job-stop/{worker}", "worker"},
    {"GET /v2/{endpoint}/ping/{worker}", "worker"},
    {"POST /v2/{endpoint}/job-done/{worker}/{job}", "worker"},
    {"POST /v2/{endpoint}/job-done-batch/{worker}", "worker"},
    {"POST /v2/{endpoint}/job-stream/{worker}/{job}", "worker"},
    {"GET /v1/me", "client submit read monitor worker bound"},
    {"GET /v1/health", "read monitor bound"},
    {"POST /v1/keys", "admin"},
    {"GET /v1/keys", "admin"},
    {"DELETE /v1/keys/{id}", "admin"},
    {"POST /v1/templates", "admin"},
    {"GET /v1/templates", "read"},
    {"GET /v1/templates/{id}", "read"},
    {"PATCH /v1/templates/{id}", "admin"},
    {"POST /v1/templates/{id}/update", "admin"},
    {"DELETE /v1/templates/{id}", "admin"},
    {"POST /v1/endpoints", "admin"},
    {"GET /v1/endpoints", "read bound"},
    {"GET /v1/endpoints/{id}", "read bound"},
    {"PATCH /v1/endpoints/{id}", "admin"},
    {"POST /v1/endpoints/{id}/update", "admin"},
    {"DELETE /v1/endpoints/{id}", "admin"},
    {"POST /v1/endpoints/{id}/pause", "admin"},
    {"POST /v1/endpoints/{id}/resume", "admin"},
    {"GET /v1/endpoints/{id}/workers/{worker}/logs", "admin"},
    {"GET /v1/jobs", "client read"},  // with ?endpoint= also for keys bound to this endpoint
    {"GET /v1/plugins", "read"},
    {"GET /v1/nodes", "read monitor"},
    {"POST /v1/nodes/{name}/drain", "admin"},
    {"POST /v1/nodes/{name}/resume", "admin"},
    {"POST /v1/backup", "admin"},
    {"GET /v1/webhooks", "admin"},
    {"POST /v1/webhooks/{id}/replay", "admin"},
    {"GET /v1/webhooks/secret", "admin"},
    {"GET /", "none"},
    {"GET /docs", "none"},
    {"GET /openapi.json", "none"},
    {"GET /healthz", "none"},
    {"GET /readyz", "none"},
};

class ServerScopesTest : public ServerTest {
 protected:
  using Words = std::set<std::string>;

  ServerScopesTest() {
    open("storage = memory\nendpoint.ep.image = plugin/echo\nendpoint.other.image = plugin/echo\n");
  }

  static Words wordsOf(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
  }
  static std::map<std::string, Words> table() {
    std::map<std::string, Words> all;
    for (const auto& [call, scopes] : kScopes) {
      const std::string text = call;
      all[text] = wordsOf(scopes);
      const std::size_t mount = text.find("/v2/");
      if (mount != std::string::npos) all[std::string(text).insert(mount, "/sdk")] = wordsOf(scopes);
    }
    return all;
  }
  static bool hasEndpoint(const std::string& call) { return call.find("{endpoint}") != std::string::npos; }

  /// Calls of workers for jobs wait up to 25 s, and their refusals are late.
  static bool isWaiting(const std::string& call) {
    return call.find("/job-take") != std::string::npos || call.find("/job-stop") != std::string::npos;
  }

  std::string makeKey(const std::string& scope, const std::string& endpoints = "[]") const {
    return call("POST", "/v1/keys", R"({"name":"k","scopes":[")" + scope + R"("],"endpoints":)" + endpoints + "}")
        .field("key");
  }
  /// Makes the call of a row with values for the placeholders.
  Answer makeCall(const std::string& row, const std::string& key, const std::string& endpoint = "ep") const {
    std::string method;
    std::string path;
    std::istringstream(row) >> method >> path;
    for (std::size_t open = path.find('{'); open != std::string::npos; open = path.find('{')) {
      const std::size_t close = path.find('}', open);
      const bool isEndpoint = path.substr(open, close - open) == "{endpoint";
      path.replace(open, close - open + 1, isEndpoint ? endpoint : "none");
    }
    if (path.find("/stream/") != std::string::npos) path += "?offset=0";  // without an offset the call changes the job
    return callWith(key, method, path, method == "GET" ? "" : R"({"input":{}})");
  }
};

TEST_F(ServerScopesTest, EachRouteHasTheScopesOfTheTable) {
  std::map<std::string, Words> found;
  for (const Router::Row& row : application_->routes()) {
    Words& words = found[row.call];
    for (const ScopeName& each : kScopeNames) {
      if (row.scope.permits(each.scope)) words.insert(each.name);
    }
    if (words.empty()) words.insert("none");
    if (row.scope.takesBoundKeys()) words.insert("bound");
    if (words.contains("client") && words.contains("worker")) words.erase("admin");  // any key
  }
  EXPECT_EQ(found, table());
}

TEST_F(ServerScopesTest, AKeyOpensTheRoutesOfItsScopeAlone) {
  for (const ScopeName& scope : kScopeNames) {
    const std::string key = makeKey(scope.name);
    for (const auto& [row, scopes] : table()) {
      if (isWaiting(row)) continue;
      const bool isOpen = scope.scope == Scope::admin || scopes.contains("none") || scopes.contains(scope.name);
      EXPECT_EQ(makeCall(row, key).status != 401, isOpen) << scope.name << ": " << row;
    }
  }
}

TEST_F(ServerScopesTest, AKeyOfEndpointsOpensTheirRoutesAlone) {
  for (const ScopeName& scope : kScopeNames) {
    const std::string key = makeKey(scope.name, R"(["ep"])");
    for (const auto& [row, scopes] : table()) {
      if (isWaiting(row) || scopes.contains("none")) continue;
      const bool hasScope = scope.scope == Scope::admin || scopes.contains(scope.name);
      const bool isOpen = hasScope && (hasEndpoint(row) || scopes.contains("bound"));
      EXPECT_EQ(makeCall(row, key).status != 401, isOpen) << scope.name << " of ep: " << row;
      if (!hasEndpoint(row)) continue;
      EXPECT_EQ(makeCall(row, key, "other").status, 401) << scope.name << " of ep: " << row;
    }
  }
}

TEST_F(ServerScopesTest, NoKeyOpensTheRoutesWithoutAScopeAlone) {
  for (const auto& [row, scopes] : table()) {
    if (isWaiting(row)) continue;
    EXPECT_EQ(makeCall(row, "").status == 401, !scopes.contains("none")) << row;
  }
}

}  // namespace
