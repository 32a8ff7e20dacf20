// Tests of the start of the HTTP server (core/http/transport/server.h).
#include "core/http/transport/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "connection_fixture.h"
#include "core/config/server_config.h"
#include "core/http/transport/budget.h"
#include "jobq/error.h"
#include "testkit/recording_log.h"

namespace jobq {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

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
  EXPECT_EQ(log_.lines().size(), 1U) << "one line says that the server listens";
}

TEST_F(HttpServerTest, AFailedStartIsNoStart) {
  server_.open();
  ServerConfig same = config_;
  const std::string address = server_.address();
  same.port = static_cast<decltype(same.port)>(std::stoi(address.substr(address.rfind(':') + 1)));
  HttpServer other(same, handlers_, waiting_, log_);
  server_.start();
  EXPECT_THROW(other.start(), ConfigError);
  EXPECT_THROW(other.start(), ConfigError) << "a repeated start must not pass for a good one";
  EXPECT_EQ(other.address(), "");
  server_.stop();
  other.start();
  EXPECT_EQ(other.address(), address);
}

}  // namespace
}  // namespace jobq
