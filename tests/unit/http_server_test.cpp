// Tests of the start of the HTTP server (core/http/transport/server.h).
#include "core/http/transport/server.h"

#include <Poco/Net/StreamSocket.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "connection_fixture.h"
#include "core/base/suspended_call.h"
#include "core/config/server_config.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"
#include "jobq/error.h"
#include "jobq/mutex.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  static ServerConfig onAnyPort() {
    ServerConfig config;
    config.host = "127.0.0.1";
    config.port = 0;
    return config;
  }

  const ServerConfig config_ = onAnyPort();
  testkit::RecordingLog log_;
  test::FunctionHandlers handlers_{[](ServerRequest&, ServerResponse&) {}};
  Budget waiting_{8};
  HttpServer server_{config_, handlers_, waiting_, log_};
};

TEST_F(HttpServerTest, ASecondStartDoesNothing) {
  server_.start();
  const std::string address = server_.address();
  EXPECT_THAT(address, HasSubstr("http://127.0.0.1:"));
  server_.start();
  EXPECT_EQ(server_.address(), address);
  EXPECT_EQ(log_.lines().size(), 1U) << "a single line announces the server";
}

TEST_F(HttpServerTest, AFailedStartIsNoStart) {
  server_.open();
  ServerConfig same = config_;
  const std::string address = server_.address();
  same.port = static_cast<decltype(same.port)>(std::stoi(address.substr(address.rfind(':') + 1)));
  HttpServer other(same, handlers_, waiting_, log_);
  server_.start();
  EXPECT_THROW(other.start(), ConfigError);
  EXPECT_THROW(other.start(), ConfigError) << "a repeated start fails as well";
  EXPECT_EQ(other.address(), "");
  server_.stop();
  other.start();
  EXPECT_EQ(other.address(), address);
}

// A text without a key leaves in small steps, and the next answers on its connection do not.
TEST_F(HttpServerTest, TheBoundOfAKeylessTextEndsWithTheText) {
  static constexpr std::string_view kText = "a text of the program";
  std::vector<int> bounds;
  test::FunctionHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    for (int descriptor = 0; descriptor < 1'024; ++descriptor) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      auto* const address = reinterpret_cast<sockaddr*>(&peer);
      if (::getpeername(descriptor, address, &size) != 0 || address->sa_family != AF_INET) continue;
      if (Poco::Net::SocketAddress(address, size) != request.clientAddress()) continue;
      int bound = -1;
      socklen_t length = sizeof bound;
      (void)::getsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bound, &length);
      bounds.push_back(bound);
    }
    response.sendText("", kText);
  });
  HttpServer server(config_, handlers, waiting_, log_);
  server.start();
  Poco::Net::StreamSocket client(Poco::Net::SocketAddress(server.address().substr(std::string_view("http://").size())));
  client.setReceiveTimeout(Poco::Timespan(60, 0));
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  for (int i = 0; i < 2; ++i) {
    client.sendBytes(request.data(), static_cast<int>(request.size()));
    std::string answer;
    char part[512];
    while (!answer.ends_with(kText)) {
      const int got = client.receiveBytes(part, sizeof part);
      ASSERT_GT(got, 0) << answer;
      answer.append(part, static_cast<std::size_t>(got));
    }
  }
  server.stop();
  EXPECT_EQ(bounds, (std::vector<int>{0, 0}));
}

// At the stop of a server all waiting callers get an answer at once, also with few threads.
TEST_F(HttpServerTest, AStopAnswersTheCallersAfterTheGracePeriod) {
  constexpr int kCallers = 200;
  Mutex mutex;
  std::set<std::uint64_t> waiting;
  SuspendedCall call;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    {
      Lock lock(mutex);
      call = request.client().call();
      if (waiting.insert(call.id).second) return RequestHandler::Progress::waitsForResume;
    }
    response.sendText("done");
    return RequestHandler::Progress::answered;
  });
  ServerConfig config = config_;
  config.threads = 1;
  HttpServer server(config, handlers, waiting_, log_);
  server.start();
  const Poco::Net::SocketAddress address(server.address().substr(std::string_view("http://").size()));
  const std::string request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  std::vector<Poco::Net::StreamSocket> clients;
  for (int i = 0; i < kCallers; ++i) {
    clients.emplace_back(address);
    clients.back().sendBytes(request.data(), static_cast<int>(request.size()));
  }
  testkit::waitFor("all callers to wait", [&] {
    Lock lock(mutex);
    return waiting.size() == kCallers;
  });
  for (const std::uint64_t id : waiting) call.resumer->resume(id);
  server.stop(Millis(0));
  for (auto& client : clients) {
    char answer[512];
    client.setReceiveTimeout(Poco::Timespan(60, 0));
    const int got = client.receiveBytes(answer, sizeof answer);
    EXPECT_THAT(std::string(answer, static_cast<std::size_t>(std::max(got, 0))), HasSubstr("done"));
  }
}

}  // namespace
}  // namespace jobq
