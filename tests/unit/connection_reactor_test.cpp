// Tests of the connection reactor over a real listener: queued connections at shutdown
// (core/http/transport/connection_reactor.h).
#include "core/http/transport/connection_reactor.h"

#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <string>

#include "connection_fixture.h"
#include "core/http/transport/message.h"
#include "testkit/recording_log.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;

/// Reads the whole body of each request, until the client has sent the body or the connection ends.
class BodyReadingFactory final : public test::FunctionHandlers {
 public:
  BodyReadingFactory()
      : FunctionHandlers([this](ServerRequest& request, ServerResponse& response) {
          ++begun;
          const std::string body(std::istreambuf_iterator<char>(request.stream()), {});
          response.sendBuffer(body.data(), body.size());
        }) {}

  std::atomic<int> begun = 0;
};

class ConnectionReactorTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  int listener() {
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
    socket.listen(16);
    address_ = socket.address();
    const int descriptor = ::fcntl(socket.impl()->sockfd(), F_DUPFD_CLOEXEC, 3);
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    return descriptor;
  }
  Poco::Net::StreamSocket ask(const std::string& text) const {
    Poco::Net::StreamSocket client(address_);
    client.sendBytes(text.data(), static_cast<int>(text.size()));
    return client;
  }

  testkit::RecordingLog log_;
  BodyReadingFactory handlers_;
  Poco::Net::SocketAddress address_;
  const ConnectionReactor::Rules rules_{1, std::chrono::minutes(10), 0, nullptr, handlers_, *params_, waiting_};
};

TEST_F(ConnectionReactorTest, AStopForgetsTheQueuedConnections) {
  ConnectionReactor reactor(listener(), rules_, log_);
  reactor.start();
  const std::string request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
  const auto served = ask(request);
  ASSERT_TRUE(holdsSoon([&] { return handlers_.begun == 1; })) << "the only thread is not busy";
  const auto queued = ask(request);
  ASSERT_TRUE(holdsSoon([&] { return reactor.serving() == 2; })) << "the second request does not wait for the first";
  reactor.stop();
  EXPECT_EQ(handlers_.begun, 1) << "the queued request was dropped";
  EXPECT_EQ(reactor.serving(), 0U) << "a later look at them would be a use after free";
  EXPECT_TRUE(reactor.awaitQuiet(std::chrono::milliseconds(0)));
  reactor.stop();
}

}  // namespace
}  // namespace jobq
