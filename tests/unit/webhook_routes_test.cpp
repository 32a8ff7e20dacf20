// Tests of /v1/webhooks without a socket: the deliveries shown to an admin, and the calls of an admin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/secret_box.h"
#include "core/http/api/routes.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/json.h"
#include "jobq/storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/outbox_access.h"
#include "testkit/temporary_folder.h"
#include "tests/support/fakes.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

class OneLine final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

class WebhookRoutes : public testing::Test {
 protected:
  WebhookRoutes()
      : storage_(testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                              PluginEnv{config_, clock_, log_, "/nowhere", false})) {
    addWebhookRoutes(router_, {storage_->outbox(), secrets_, deliveries_});
  }

  ApiResponse call(const std::string& method, const std::string& path,
                   std::multimap<std::string, std::string> query = {}) {
    const auto found = router_.find(method, path);
    if (!std::holds_alternative<Router::Match>(found)) return {404, "no route"};
    const auto& match = std::get<Router::Match>(found);
    EXPECT_EQ(match.route->scope, Scope::admin);
    ApiRequest call;
    call.method = method;
    call.path = path;
    call.query = std::move(query);
    call.params = match.params;
    return std::get<ApiResponse>(match.route->run(call));
  }
  void owe(const JobId& id, const std::string& url = "https://u:p@h/?token=1") {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{\"hidden\":1}";
    job.webhook = url;
    (void)storage_->jobs().insert(std::move(job), OneLine());
    (void)storage_->jobs().cancel({"ep", id});
  }

  testkit::MapConfig config_;
  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  std::unique_ptr<Storage> storage_;
  const testkit::TemporaryFolder folder_;
  const SecretBox box_{folder_ / "secret.key"};
  test::SetSecrets endpointSecrets_;
  WebhookSecrets secrets_{"x", endpointSecrets_, storage_->records(), box_};
  test::CountingDeliveries deliveries_;
  Router router_;
};

TEST_F(WebhookRoutes, AJobsDeliveriesAreListed) {
  owe("a");
  EXPECT_EQ(call("GET", "/v1/webhooks", {{"jobId", "a"}}).body,
            R"([{"id":"a.0","jobId":"a","endpointId":"ep","state":"owed","url":"https://u:p@h/?token=1",)"
            R"("jobStatus":"CANCELLED","dueAt":"2026-01-01T00:00:00.000Z","attempts":[]}])");
  testkit::recordNext(storage_->outbox(), testkit::lastClaim(storage_->outbox(), "a.0"),
                      {{}, 500, Millis(12), "no \"luck\"", "\xff\x01"});
  testkit::recordNext(storage_->outbox(), testkit::lastClaim(storage_->outbox(), "a.0"),
                      {{}, 200, Millis(3), std::nullopt, "ok"});
  storage_->outbox().finishDelivery(testkit::lastClaim(storage_->outbox(), "a.0"), DeliveryState::delivered);
  EXPECT_EQ(call("GET", "/v1/webhooks", {{"jobId", "a"}}).body,
            R"([{"id":"a.0","jobId":"a","endpointId":"ep","state":"delivered","url":"https://u:p@h/?token=1",)"
            R"("jobStatus":"CANCELLED","attempts":[)"
            R"({"at":"2026-01-01T00:00:00.000Z","status":500,"durationMs":12,"reason":"no \"luck\"","reply":)"
            "\"\xef\xbf\xbd\\u0001\"},"
            R"({"at":"2026-01-01T00:00:00.000Z","status":200,"durationMs":3,"reason":"","reply":"ok"}]}])");
}

TEST_F(WebhookRoutes, AnEndpointsDeliveriesAreListedNewestFirst) {
  for (int i = 0; i < 120; ++i) owe("j" + std::to_string(i));
  const auto count = [this](std::multimap<std::string, std::string> query) {
    const std::string body = call("GET", "/v1/webhooks", std::move(query)).body;
    const auto read = json::read(body);
    return std::holds_alternative<json::Document>(read) ? std::get<json::Document>(read).elements.size() : 9'999U;
  };
  EXPECT_EQ(count({{"endpointId", "ep"}}), 100U);
  EXPECT_EQ(count({{"endpointId", "ep"}, {"limit", "1000"}}), 120U);
  EXPECT_EQ(count({{"endpointId", "ep"}, {"jobId", "j7"}}), 1U);
  EXPECT_EQ(count({{"endpointId", "other"}, {"jobId", "j7"}}), 0U);
  EXPECT_THAT(call("GET", "/v1/webhooks", {{"endpointId", "ep"}, {"limit", "1"}}).body, HasSubstr("\"j119\""));
}

TEST_F(WebhookRoutes, AnUnknownJobHasAnEmptyListAndAMissingIdIs400) {
  EXPECT_EQ(call("GET", "/v1/webhooks", {{"jobId", "nobody"}}).body, "[]");
  EXPECT_EQ(call("GET", "/v1/webhooks", {{"endpointId", "nowhere"}}).body, "[]");
  const ApiResponse nothing = call("GET", "/v1/webhooks");
  EXPECT_EQ(nothing.status, 400);
  EXPECT_THAT(nothing.body, HasSubstr("\"message\":\"jobId"));
  EXPECT_EQ(call("GET", "/v1/webhooks", {{"jobId", ""}}).status, 400);
  for (const char* limit : {"0", "1001", "x", "", "1.5", "-1"}) {
    const ApiResponse refused = call("GET", "/v1/webhooks", {{"endpointId", "ep"}, {"limit", limit}});
    EXPECT_EQ(refused.status, 400) << limit;
    EXPECT_THAT(refused.body, HasSubstr("limit"));
  }
  for (const char* name : {"endpointId", "jobId", "limit"}) {
    const ApiResponse refused = call("GET", "/v1/webhooks", {{"endpointId", "ep"}, {name, "1"}, {name, "1"}});
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_THAT(refused.body, HasSubstr(std::string(name) + " appears more than once"));
  }
}

TEST_F(WebhookRoutes, AReplayIsOwedAgainAndNotifies) {
  owe("a");
  storage_->outbox().finishDelivery(testkit::lastClaim(storage_->outbox(), "a.0"), DeliveryState::abandoned);
  const ApiResponse response = call("POST", "/v1/webhooks/a.0/replay");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"id":"a.0","state":"owed"})");
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_EQ(testkit::claimAllDue(storage_->outbox(), Millis(1'000)).size(), 1U);
  const ApiResponse unknown = call("POST", "/v1/webhooks/a.7/replay");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("\"message\":"));
  EXPECT_EQ(deliveries_.count, 1);
}

TEST_F(WebhookRoutes, TheSecretIsToldToAdmins) {
  const ApiResponse response = call("GET", "/v1/webhooks/secret");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"secret":"whsec_eA=="})");
}

TEST_F(WebhookRoutes, AListTellsNoInput) {
  owe("a");
  EXPECT_THAT(call("GET", "/v1/webhooks", {{"jobId", "a"}}).body, Not(HasSubstr("hidden")));
}

}  // namespace
}  // namespace jobq
