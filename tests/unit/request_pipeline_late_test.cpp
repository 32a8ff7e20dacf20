// Tests of slow requests: a fact checked at the head may have changed at the end of the body, or during the wait
// (core/http/api/request_pipeline.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/http/transport/connection.h"
#include "request_pipeline_fixture.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class LateRequestTest : public RequestPipelineTest {
 protected:
  /// Sends the request without the last byte of its body.
  void begin(const std::string& path, const std::string& secret) {
    caller_.send(head("POST " + path, secret, "Content-Length: 2\r\n") + "{");
    ASSERT_EQ(connection_.receive(), Connection::Ready::yes);
    ASSERT_EQ(connection_.serve(), Connection::Next::awaitInput);
  }
  /// Sends the last byte and returns the answer.
  std::string end() {
    caller_.send("}");
    EXPECT_NE(connection_.serve(), Connection::Next::awaitInput);
    return caller_.received();
  }
  std::string clientKey() {
    key_.scopes = {"client"};
    return keys_.create(key_);
  }

  ApiKey key_;
  test::SocketPair caller_;
  Connection connection_{1, caller_.releaseStream(), server_};
};

TEST_F(LateRequestTest, AKeyRevokedDuringTheBodyIsRefused) {
  bool hasRun = false;
  act_ = [&](ApiRequest&) {
    hasRun = true;
    return ApiResponse{200, "{}"};
  };
  begin("/v2/ep/run", clientKey());
  EXPECT_EQ(keys_.revoke(key_.id), Revocation::revoked);
  EXPECT_THAT(end(), StartsWith("HTTP/1.1 401 "));
  EXPECT_FALSE(hasRun);
  EXPECT_EQ(limiter_.inside, 0) << "the answer gives the place back";
}

TEST_F(LateRequestTest, AnEndpointDeletedDuringTheBodyIsUnknown) {
  const EndpointId id = createEndpoint(node_, createTemplate(node_, "t"));
  begin("/v2/" + id + "/run", client_);
  ASSERT_TRUE(node_.endpoints.remove(id));
  EXPECT_THAT(end(), StartsWith("HTTP/1.1 404 "));
}

TEST_F(LateRequestTest, TheRouteSeesTheEndpointAsOfTheEndOfTheBody) {
  const EndpointId id = createEndpoint(node_, createTemplate(node_, "t"));
  std::uint32_t workersMax = 0;
  act_ = [&](ApiRequest& request) {
    workersMax = request.endpoint->spec.workersMax;
    return ApiResponse{200, "{}"};
  };
  begin("/v2/" + id + "/run", client_);
  ASSERT_TRUE(node_.endpoints.update(id, R"({"workersMax":77})"));
  EXPECT_THAT(end(), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(workersMax, 77U);
}

/// Waits for ever.
class EndlessCall final : public PendingCall {
 public:
  std::optional<ApiResponse> poll(ApiRequest&) override { return std::nullopt; }
  std::optional<BodyPart> nextPart(ApiRequest&) override { return std::nullopt; }
};

class WaitingRequestTest : public LateRequestTest {
 protected:
  /// Calls a route with the result, revokes the key of the call, and continues the call until the end. The key is
  /// checked twice a second at most. Returns the bytes received by the caller.
  std::string revokeDuring(std::function<RouteResult()> result) {
    Route route{.scope = Scope::client};
    route.methods = {"GET"};
    route.pattern = "/waiting";
    route.run = [result = std::move(result)](ApiRequest&) { return result(); };
    router_.add(std::move(route));
    caller_.send(head("GET /waiting", clientKey()));
    EXPECT_EQ(connection_.receive(), Connection::Ready::yes);
    EXPECT_EQ(connection_.serve(), Connection::Next::suspend);
    EXPECT_EQ(connection_.serve(), Connection::Next::suspend);
    EXPECT_EQ(keys_.revoke(key_.id), Revocation::revoked);
    testkit::waitFor("the end of the call", [&] { return connection_.serve() != Connection::Next::suspend; });
    return caller_.received();
  }
};

TEST_F(WaitingRequestTest, AWaitingCallOfACallerEndsWithTheKey) {
  EXPECT_THAT(revokeDuring([] { return std::make_unique<EndlessCall>(); }), StartsWith("HTTP/1.1 401 "));
}

TEST_F(WaitingRequestTest, AnOpenAnswerEndsWithTheKey) {
  const auto open = [] {
    ApiResponse begin{200, "data: 1\n\n"};
    begin.isOpen = true;
    return OpenAnswer{std::move(begin), std::make_unique<EndlessCall>()};
  };
  EXPECT_THAT(revokeDuring(open), HasSubstr("data: 1\n\n"));
}

TEST_F(LateRequestTest, TwoIdempotencyKeysAreASingleList) {
  std::optional<std::string> seen;
  act_ = [&](ApiRequest& request) {
    seen = request.idempotencyKey;
    return ApiResponse{200, "{}"};
  };
  (void)ask(head("POST /v2/ep/run", client_, "Idempotency-Key: a\r\nContent-Length: 2\r\nidempotency-key: b\r\n") +
            "{}");
  EXPECT_EQ(seen, "a, b") << "a key has no blank, so the route refuses the list";
}

}  // namespace
}  // namespace jobq
