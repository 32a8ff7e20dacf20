// Tests of the way of a request from the head to the answer, over a pair of sockets (core/http/api/request_pipeline.h):
// the order of the checks, and the handling of failures.
#include "core/http/api/request_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>

#include "core/http/api/exchange.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "core/jobs/admission.h"
#include "request_pipeline_fixture.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST_F(RequestPipelineTest, ARouteSeesTheCall) {
  act_ = [this](ApiRequest& call) {
    EXPECT_EQ(call.method, "POST");
    EXPECT_EQ(call.path, "/v2/ep/run");
    EXPECT_EQ(call.query.find("a b")->second, "1/2");
    EXPECT_EQ(call.params.at("endpoint"), "ep");
    EXPECT_EQ(call.idempotencyKey, "once");
    EXPECT_EQ(call.body, "{\"n\":1}");
    EXPECT_EQ(call.endpoint, node_.registry.find("ep"));
    EXPECT_EQ(call.key->scopes, std::vector<std::string>{"client"});
    EXPECT_NE(call.client, nullptr);
    EXPECT_EQ(limiter_.inside, 1);
    return ApiResponse{201, "{\"id\":1}", {{"X-Mine", "yes"}}};
  };
  const std::string answer =
      ask(head("POST /v2/e%70/run?a+b=1%2F2", client_, "Idempotency-Key: once\r\nContent-Length: 7\r\n") + "{\"n\":1}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 201 "));
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Mine: yes\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n{\"id\":1}"));
  EXPECT_EQ(next_, Connection::Next::park);
  EXPECT_EQ(limiter_.inside, 0) << "the answer gives the place back";
}

TEST_F(RequestPipelineTest, ABodyInACodingIsRefusedUnread) {
  int served = 0;
  act_ = [&served](ApiRequest&) {
    ++served;
    return ApiResponse{200, "{}"};
  };
  const auto asked = [this](const std::string& line, const std::string& fields) {
    return ask(head(line, line.find("/v1/") == std::string::npos ? client_ : admin_, fields + "Content-Length: 2\r\n") +
               "{}");
  };
  const std::string run = "POST /v2/ep/run";
  for (const char* coding : {"gzip", "zstd", "identity, gzip"}) {
    const std::string answer = asked(run, "Content-Encoding: " + std::string(coding) + "\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 415 "));
    EXPECT_THAT(answer, HasSubstr("a body with Content-Encoding: " + std::string(coding) + " is not read here"));
    EXPECT_THAT(answer, HasSubstr("\r\nAccept-Encoding: identity\r\n"));
  }
  const std::string form = asked(run, "Content-Type: Multipart/form-data; boundary=x\r\n");
  EXPECT_THAT(form, StartsWith("HTTP/1.1 415 "));
  EXPECT_THAT(form, HasSubstr("a multipart form is not read here: send a JSON object"));
  EXPECT_EQ(served, 0);
  EXPECT_THAT(asked(run, "Content-Encoding: Identity\r\nContent-Type: text/plain\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(asked("POST /v1/things", "Content-Encoding: gzip\r\n"), StartsWith("HTTP/1.1 200 "))
      << "the body is not read";
}

TEST_F(RequestPipelineTest, AByteOrderMarkIsNoPartOfTheBody) {
  std::string body;
  act_ = [&body](ApiRequest& call) {
    body = call.body;
    return ApiResponse{200, "{}"};
  };
  EXPECT_THAT(run("\xEF\xBB\xBF{\"a\":1}"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(body, "{\"a\":1}");
}

TEST_F(RequestPipelineTest, AnUnknownPathNeedsNoKey) {
  EXPECT_THAT(ask(head("GET /v2/ep/nothing", "")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(head("GET /v1/nothing", "")), HasSubstr("{\"message\":\"there is nothing at /v1/nothing"));
  EXPECT_THAT(ask(head("GET /v1%2Fthings", "")), HasSubstr("there is nothing at /v1%2Fthings"));
  const std::string wrong = ask(head("DELETE /v1/things", ""));
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(wrong, HasSubstr("\r\nAllow: GET, HEAD, POST\r\n"));
  EXPECT_THAT(ask(head("GET /%zz", "")), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(head("OPTIONS *", "")), StartsWith("HTTP/1.1 200 "));
}

TEST_F(RequestPipelineTest, AKeyIsAskedForBeforeAnythingIsToldOfEndpoints) {
  for (const char* endpoint : {"ep", "nothing"}) {
    const std::string text = head("POST /v2/" + std::string(endpoint) + "/run", "wrong", "Content-Length: 0\r\n");
    const std::string answer = ask(text);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 ")) << endpoint;
    EXPECT_THAT(answer, HasSubstr("\r\nWWW-Authenticate: Bearer realm=\"jobq\"\r\n"));
  }
  EXPECT_THAT(run("{}", "nothing"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(head("GET /v1/things", client_)), StartsWith("HTTP/1.1 401 ")) << "the key has a different scope";
  EXPECT_THAT(ask(head("GET /v1/things", admin_)), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(head("GET /ping", "")), StartsWith("HTTP/1.1 200 ")) << "the route requires no key";
}

TEST_F(RequestPipelineTest, ATooFastCallIsRefusedUnreadWithATimeToRetry) {
  limiter_.verdict = {false, Millis(1'500), 0};
  bool served = false;
  act_ = [&served](ApiRequest&) {
    served = true;
    return ApiResponse{};
  };
  const std::string answer = run("{}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 2\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nRateLimit-Remaining: 0\r\n"));
  EXPECT_FALSE(served);
  EXPECT_EQ(limiter_.inside, 0);
  limiter_.verdict = {true, Millis(0), 5};
  EXPECT_THAT(run("{}"), HasSubstr("\r\nRateLimit-Remaining: 5\r\n"));
  EXPECT_THAT(ask(head("GET /ping", "")), Not(HasSubstr("RateLimit")));
}

TEST_F(RequestPipelineTest, AMalformedCallCountsAgainstTheRateOfMalformedCalls) {
  act_ = [](ApiRequest& call) { return call.body == "good" ? ApiResponse{} : ApiResponse{400, "{}"}; };
  EXPECT_THAT(run("bad"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(limiter_.counted, ElementsAre("ep/run/malformed"));
  EXPECT_THAT(run("good"), HasSubstr("\r\nRateLimit-Remaining: 5\r\n"));
  EXPECT_THAT(ask(head("POST /v2/ep/run", client_)), StartsWith("HTTP/1.1 400 ")) << "the body has no length";
  EXPECT_THAT(limiter_.counted, ElementsAre("ep/run/malformed", "ep/run/counted", "ep/run/malformed"));
  limiter_.tooMalformed = true;
  const std::string refused = run("bad");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(refused, HasSubstr("\r\nRetry-After: 3\r\n"));
  EXPECT_THAT(run("good"), StartsWith("HTTP/1.1 200 "));
  act_ = [](ApiRequest&) -> ApiResponse { throw StorageError("the disk is full"); };
  const std::size_t before = limiter_.counted.size();
  EXPECT_THAT(run("good"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(limiter_.counted.size(), before) << "a failure of the server does not count";
  EXPECT_EQ(limiter_.inside, 0);
}

TEST_F(RequestPipelineTest, ABodyOverTheLimitIsRefusedUnread) {
  const std::string answer =
      ask(head("POST /v2/ep/run", client_, "Content-Length: " + std::to_string((4UL << 20) + 1) + "\r\n"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer, HasSubstr(tooLarge("/v2/ep/run", 4UL << 20).body));
  EXPECT_EQ(next_, Connection::Next::discardInput);
  EXPECT_THAT(ask(head("POST /v1/things", admin_, "Transfer-Encoding: chunked\r\n") + "100001\r\n"),
              StartsWith("HTTP/1.1 413 "))
      << "an oversized chunk is refused before the bytes";
}

TEST(TooLarge, NamesTheLimitInMegabytesOrKilobytes) {
  EXPECT_THAT(tooLarge("/v1/keys", 64UL << 10).body, HasSubstr("the body is over the limit of 64 KB: send less"));
  EXPECT_THAT(tooLarge("/v1/templates", 1UL << 20).body, HasSubstr("limit of 1 MB:"));
  EXPECT_THAT(tooLarge("/v2/e/runsync", 20UL << 20).body, HasSubstr("limit of 20 MB:"));
}

TEST_F(RequestPipelineTest, LargeBodiesShareAMemory) {
  std::uint64_t left = 0;
  BodyMemory::Reservation taken;
  ASSERT_TRUE(taken.grow(bodyMemory_, "other", 1));
  const std::string refused =
      ask(head("POST /v2/ep/run", client_, "Content-Length: " + std::to_string(3UL << 20) + "\r\n"));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("too many bytes of large bodies are being received: the limit is 3145728 "
                                 "(server.bodyMemory, a quarter for an endpoint); try again in a moment"));
  EXPECT_THAT(refused, HasSubstr("\r\nRetry-After: 1\r\n"));
  const std::string chunked = ask(head("POST /v2/ep/run", client_, "Transfer-Encoding: chunked\r\n") + "10\r\n" +
                                  std::string(16, 'x') + "\r\n0\r\n\r\n");
  EXPECT_THAT(chunked, StartsWith("HTTP/1.1 200 ")) << "a small body needs no shared memory";
  act_ = [&](ApiRequest& call) {
    left = bodyMemory_.left();
    EXPECT_EQ(call.body.size(), 1UL << 10);
    return ApiResponse{};
  };
  EXPECT_THAT(run(std::string(1UL << 10, ' ')), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(left, (3UL << 20) - 1);
  EXPECT_EQ(bodyMemory_.left(), (3UL << 20) - 1);
}

TEST_F(RequestPipelineTest, ABodyDrawsOnTheMemoryDuringTheReception) {
  std::uint64_t announced = 0;
  std::uint64_t come = 0;
  handlers_.entered = [&] { announced = bodyMemory_.left(); };
  act_ = [&](ApiRequest&) {
    come = bodyMemory_.left();
    return ApiResponse{};
  };
  const std::size_t size = 5UL << 18;
  const std::string body(size, ' ');
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("POST /v2/ep/run", client_, "Content-Length: " + std::to_string(size) + "\r\n"));
  ASSERT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serve(), Connection::Next::awaitInput);
  EXPECT_EQ(bodyMemory_.left(), (3UL << 20) - (16UL << 10)) << "a waiting body has the memory of the first step";
  client.send(body.substr(0, 20'000));
  EXPECT_EQ(connection.serve(), Connection::Next::awaitInput);
  EXPECT_EQ(bodyMemory_.left(), (3UL << 20) - 20'000) << "an incomplete body counts whole";
  auto sending = std::async(std::launch::async, [&] { client.send(body.substr(20'000)); });
  testkit::waitFor("the whole body", [&] { return connection.serve() == Connection::Next::park; });
  testkit::resultOf("the client to send its body", sending);
  EXPECT_EQ(announced, 3UL << 20) << "an announced length takes no memory";
  EXPECT_EQ(come, (3UL << 20) - size);
  EXPECT_EQ(bodyMemory_.left(), 3UL << 20);
}

TEST_F(RequestPipelineTest, AWaitingBodyGoesOnInSmallSteps) {
  constexpr std::size_t kSize = 5UL << 19;
  constexpr std::size_t kBegin = kSize / 2;
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("POST /v2/ep/run", client_, "Content-Length: " + std::to_string(kSize) + "\r\n"));
  ASSERT_EQ(connection.receive(), Connection::Ready::yes);
  ASSERT_EQ(connection.serve(), Connection::Next::awaitInput);
  const std::string begin(kBegin, ' ');
  auto sending = std::async(std::launch::async, [&] { client.send(begin); });
  testkit::waitFor("half of the body", [&] {
    EXPECT_EQ(connection.serve(), Connection::Next::awaitInput);
    return bodyMemory_.left() <= (3UL << 20) - kBegin;
  });
  testkit::resultOf("the client to send half of its body", sending);
  BodyMemory::Reservation others;
  ASSERT_TRUE(others.grow(bodyMemory_, "other", bodyMemory_.left() - (64UL << 10)));
  client.send("x");
  EXPECT_EQ(connection.serve(), Connection::Next::awaitInput) << "a byte needs no step of a megabyte";
}

/// Answers at the second poll.
class SecondPoll final : public PendingCall {
 public:
  explicit SecondPoll(std::vector<std::size_t>& bodies) : bodies_(bodies) {}
  std::optional<ApiResponse> poll(ApiRequest& request) override {
    bodies_.push_back(request.body.capacity());
    if (bodies_.size() < 2) return std::nullopt;
    return ApiResponse{200, "{\"late\":true}"};
  }

 private:
  std::vector<std::size_t>& bodies_;
};

TEST_F(RequestPipelineTest, ARouteMayAnswerLaterAndKeepsNoBodyMeanwhile) {
  std::vector<std::size_t> bodies;
  Route waiting{.scope = Scope::none};
  waiting.methods = {"POST"};
  waiting.pattern = "/wait";
  waiting.run = [&](ApiRequest&) -> RouteResult { return std::make_unique<SecondPoll>(bodies); };
  router_.add(std::move(waiting));
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("POST /wait", "", "Content-Length: 1000\r\n") + std::string(1'000, 'x'));
  ASSERT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serve(), Connection::Next::suspend);
  EXPECT_THAT(bodies, IsEmpty()) << "the route decides about a first poll";
  EXPECT_EQ(connection.serve(), Connection::Next::suspend);
  EXPECT_EQ(connection.serve(), Connection::Next::park);
  EXPECT_THAT(client.received(), HasSubstr("{\"late\":true}"));
  ASSERT_EQ(bodies.size(), 2U);
  EXPECT_LT(bodies[0], 1'000U);
}

/// Answers refusals at the second poll.
class LateRefusals final : public RefusalChange {
 public:
  explicit LateRefusals(std::vector<std::size_t>& polls) : polls_(polls) {}
  RouteResult answer(ApiRequest&, ApiResponse) const override { return std::make_unique<SecondPoll>(polls_); }

 private:
  std::vector<std::size_t>& polls_;
};

TEST_F(RequestPipelineTest, ARefusalWithoutARouteMayComeLater) {
  std::vector<std::size_t> polls;
  router_.changeRefusals({"jobs", "ping"}, std::make_shared<LateRefusals>(polls));
  for (const char* line : {"GET /v2/ep/jobs/", "GET /jobs/%zz?a=b", "DELETE //ping"}) {
    polls.clear();
    test::SocketPair client;
    Connection connection(1, client.releaseStream(), server_);
    client.send(head(line, ""));
    ASSERT_EQ(connection.receive(), Connection::Ready::yes);
    EXPECT_EQ(connection.serve(), Connection::Next::suspend) << line;
    EXPECT_EQ(connection.serve(), Connection::Next::suspend) << line;
    EXPECT_EQ(connection.serve(), Connection::Next::park) << line;
    EXPECT_THAT(client.received(), HasSubstr("{\"late\":true}")) << line;
  }
  EXPECT_THAT(ask(head("GET /ping", "")), StartsWith("HTTP/1.1 200 ")) << "the path has a separate route";
  EXPECT_THAT(ask(head("DELETE /ping", "")), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(head("GET /v2/ep/other", "")), StartsWith("HTTP/1.1 404 "));
}

TEST_F(RequestPipelineTest, AParkedCallOfAWorkerEndsWithTheKey) {
  std::vector<std::size_t> polls;
  Route waiting{.scope = Scope::none};
  waiting.methods = {"GET"};
  waiting.pattern = "/jobs";
  waiting.scope = Scope::worker;
  waiting.run = [&](ApiRequest&) -> RouteResult { return std::make_unique<SecondPoll>(polls); };
  router_.add(std::move(waiting));
  ApiKey key;
  key.scopes = {"worker"};
  const std::string secret = keys_.create(key);
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("GET /jobs", secret));
  ASSERT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serve(), Connection::Next::suspend);
  EXPECT_EQ(connection.serve(), Connection::Next::suspend);
  EXPECT_EQ(keys_.revoke(key.id), Revocation::revoked);
  EXPECT_EQ(connection.serve(), Connection::Next::park);
  EXPECT_THAT(client.received(), HasSubstr("HTTP/1.1 401 "));
  EXPECT_EQ(polls.size(), 1U) << "a further poll would have claimed a job";
}

TEST_F(RequestPipelineTest, ANeededBodyMustHaveALength) {
  EXPECT_THAT(ask(head("POST /v2/ep/run", client_)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(head("POST /v1/things", admin_)), StartsWith("HTTP/1.1 200 ")) << "the route requires no body";
}

TEST_F(RequestPipelineTest, ABrokenBodyIsA400AndTheRouteDoesNotRun) {
  act_ = [](ApiRequest&) -> ApiResponse { throw Error("it must not run"); };
  EXPECT_THAT(ask(head("POST /v2/ep/run", client_, "Transfer-Encoding: chunked\r\n") + "zz\r\n"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_EQ(next_, Connection::Next::discardInput);
}

TEST_F(RequestPipelineTest, AFailingStorageIsA503) {
  act_ = [](ApiRequest&) -> ApiResponse { throw StorageError("the disk is full"); };
  const std::string answer = run("{}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("the disk is full"));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  storage.faults.failOperation("records.changedSince");
  storage.clock.advance(Millis(5'000));
  EXPECT_THAT(run("{}"), StartsWith("HTTP/1.1 503 ")) << "the key cannot be judged";
  EXPECT_EQ(limiter_.inside, 0);
}

TEST_F(RequestPipelineTest, AFaultOfTheServerIsToldByANumberOnly) {
  act_ = [](ApiRequest&) -> ApiResponse { throw std::logic_error("a secret detail"); };
  const std::string answer = run("{}");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, Not(HasSubstr("secret detail")));
  const std::size_t at = answer.find("request ");
  ASSERT_NE(at, std::string::npos);
  const std::string number = answer.substr(at + 8, 16);
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("(request " + number + "): a secret detail")));
  act_ = [](ApiRequest&) -> ApiResponse { throw 7; };
  EXPECT_THAT(run("{}"), StartsWith("HTTP/1.1 500 "));
  limiter_.broken = true;
  EXPECT_THAT(run("{}"), StartsWith("HTTP/1.1 500 ")) << "the plugin runs before the route";
  limiter_.broken = false;
  act_ = [this](ApiRequest&) {
    limiter_.broken = true;
    return ApiResponse{400, "{}"};
  };
  EXPECT_THAT(run("{}"), StartsWith("HTTP/1.1 500 ")) << "the plugin counts the answer";
  limiter_.broken = false;
  act_ = [](ApiRequest&) -> ApiResponse { throw FilterError("the filter f of this endpoint failed"); };
  EXPECT_THAT(run("{}"), HasSubstr("the filter f of this endpoint failed"));
}

TEST_F(RequestPipelineTest, ADepartedClientIsNotAFaultOfTheServer) {
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("GET /ping", ""));
  ASSERT_EQ(connection.receive(), Connection::Ready::yes);
  client.hangUp();
  EXPECT_EQ(connection.serve(), Connection::Next::close);
  EXPECT_THAT(storage.log.lines(), Not(Contains(HasSubstr("http.fault"))));
}

}  // namespace
}  // namespace jobq
