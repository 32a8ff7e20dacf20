// Tests of the HTTP client of jobqctl against answers of the test (core/cli/api_client.h). Servers with TLS are called
// in tests/http/test_jobqctl_connection.py.
#include "core/cli/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/client/exit_code.h"
#include "scripted_server.h"

namespace jobq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class ApiClientTest : public testing::Test {
 protected:
  /// Returns code and sentence of the failure, or an empty string without a failure.
  template <class Act>
  static std::string failed(Act&& act) {
    try {
      act();
      return "";
    } catch (const CommandError& failure) {
      return std::to_string(static_cast<int>(failure.code())) + " " + failure.what();
    }
  }
  static std::string refusedAddress(const std::string& url, const std::string& key = "", const std::string& ca = "") {
    return failed([&] { (void)ApiClient(url, key, ca); });
  }
  /// Returns the failure of a GET with the bytes as the answer.
  std::string failedWith(const std::string& bytes) {
    server_.answerRaw(bytes);
    return failed([this] { (void)client_.get("/v2/x"); });
  }

  test::ScriptedServer server_;
  const ApiClient client_{server_.url(), "the-key"};
};

TEST_F(ApiClientTest, AGetCarriesTheKeyAndReturnsTheAnswerUnchanged) {
  const std::string body("{\"a\" : 1.50}\n\x00\xff", 15);
  server_.answer(body);
  EXPECT_EQ(client_.get("/v1/keys?limit=2"), body);
  ASSERT_EQ(server_.requests().size(), 1U);
  const std::string request = server_.requests()[0];
  EXPECT_THAT(request, StartsWith("GET /v1/keys?limit=2 HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nAuthorization: Bearer the-key\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\nAccept: application/json\r\n"));
  EXPECT_THAT(request, Not(HasSubstr("Content-Length")));
}

TEST_F(ApiClientTest, APostCarriesTheBody) {
  server_.answer("{}");
  EXPECT_EQ(client_.post("/v2/ep/run", "{\"input\":{}}"), "{}");
  server_.answer("");
  EXPECT_EQ(client_.post("/v1/webhooks/a.0/replay", ""), "");
  server_.answerRaw("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(client_.remove("/v1/keys/7"), "");
  EXPECT_THAT(server_.calls(),
              ElementsAre("POST /v2/ep/run {\"input\":{}}", "POST /v1/webhooks/a.0/replay", "DELETE /v1/keys/7"));
  EXPECT_THAT(server_.requests()[0], HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(server_.requests()[0], HasSubstr("\r\nContent-Length: 12\r\n"));
  EXPECT_THAT(server_.requests()[1], HasSubstr("\r\nContent-Length: 0\r\n"));
}

TEST_F(ApiClientTest, ThePathOfTheAddressComesFirstAndAnEmptyKeyIsNotSent) {
  const ApiClient client(server_.url() + "/behind/a/proxy//", "");
  server_.answer("[]");
  EXPECT_EQ(client.get("/v1/keys"), "[]");
  EXPECT_THAT(server_.calls(), ElementsAre("GET /behind/a/proxy/v1/keys"));
  EXPECT_THAT(server_.requests()[0], Not(HasSubstr("Authorization")));
}

TEST_F(ApiClientTest, TheFieldsOfAStreamComeWithTheBody) {
  server_.answer("[1]", "200 OK", "X-Job-Status: IN_PROGRESS\r\nX-Job-Attempt: 3\r\n");
  const StreamAnswer answer = client_.getStream("/v2/ep/stream/j");
  EXPECT_EQ(answer.body, "[1]");
  EXPECT_EQ(answer.status, "IN_PROGRESS");
  EXPECT_EQ(answer.attempt, "3");
  server_.answer("[]");
  const StreamAnswer without = client_.getStream("/v2/ep/stream/j");
  EXPECT_EQ(without.status, "");
  EXPECT_EQ(without.attempt, "");
}

TEST_F(ApiClientTest, ARefusalIsTheSentenceOfTheServer) {
  const auto refused = [this](std::string_view body, std::string_view status) {
    server_.answer(body, status);
    return failed([this] { (void)client_.post("/v2/x", "{}"); });
  };
  EXPECT_EQ(refused(R"({"error":"there is \"no\" job"})", "404 Not Found"), "1 there is \"no\" job");
  EXPECT_EQ(refused(R"({"message":"name is missing","errors":[]})", "400 Bad Request"), "1 name is missing");
  EXPECT_EQ(refused("<html>", "502 Bad Gateway"), "1 the server answered 502 Bad Gateway");
  EXPECT_EQ(refused("[]", "500 Internal Server Error"), "1 the server answered 500 Internal Server Error");
  EXPECT_EQ(refused(R"({"error":7})", "503 Service Unavailable"), "1 the server answered 503 Service Unavailable");
  EXPECT_EQ(refused("", "302 Found"), "1 the server answered 302 Found") << "a redirection is not followed";
  EXPECT_EQ(server_.calls().size(), 6U) << "no call is repeated";
}

TEST_F(ApiClientTest, ARefusalWithoutAKeyNamesThePlacesOfKeys) {
  const ApiClient client(server_.url(), "");
  server_.answer(R"({"error":"the API key is missing"})", "401 Unauthorized");
  EXPECT_EQ(failed([&] { (void)client.get("/v1/keys"); }),
            "1 the API key is missing (no key was given: set JOBQ_KEY, or --key; the first key of a server is in the "
            "file admin.key of its data.dir)");
  EXPECT_EQ(failedWith("HTTP/1.1 401 Unauthorized\r\nContent-Length: 13\r\n\r\n{\"error\":\"x\"}"), "1 x");
}

TEST_F(ApiClientTest, ACallRefusedForItsRateIsSentAgainAfterThePause) {
  struct NotedPauses final : RatePause {
    void wait(const std::string& sentence, Millis time) override {
      all.push_back(sentence + " " + std::to_string(time.count()));
    }
    std::vector<std::string> all;
  } pauses;
  const ApiClient client(server_.url(), "k", "", &pauses);
  const auto refuse = [this](const std::string& seconds) {
    server_.answer(R"({"error":"too fast"})", "429 Too Many Requests", "Retry-After: " + seconds + "\r\n");
  };
  refuse("1");
  refuse("119");
  server_.answer("{}");
  EXPECT_EQ(client.post("/v2/e/run", "{}"), "{}");
  EXPECT_THAT(pauses.all, ElementsAre("too fast 1000", "too fast 119000"));
  for (const char* useless : {"121", "99999999999", "0", "soon", ""}) {
    refuse(useless);
    EXPECT_EQ(failed([&] { (void)client.get("/v2/e/health"); }), "1 too fast") << useless;
  }
  refuse("61");
  refuse("60");
  EXPECT_EQ(failed([&] { (void)client.get("/v2/e/health"); }), "1 too fast") << "two minutes in all are over";
  EXPECT_EQ(pauses.all.size(), 3U);
  refuse("1");
  EXPECT_EQ(failed([this] { (void)client_.get("/v2/e/health"); }), "1 too fast") << "this client has no pause";
}

TEST_F(ApiClientTest, AnAddressMayEndWithThePrefixOfAnApi) {
  for (const char* end : {"/v2", "/v2/", "/sdk/v2", "/v1//"}) {
    const ApiClient client(server_.url() + "/proxy" + end, "");
    EXPECT_EQ(client.url(), server_.url() + "/proxy");
    server_.answer("[]");
    EXPECT_EQ(client.get("/v1/keys"), "[]");
    EXPECT_EQ(server_.calls().back(), "GET /proxy/v1/keys");
  }
  EXPECT_EQ(ApiClient("http://h/v", "").url(), "http://h/v");
}

TEST_F(ApiClientTest, ATruncatedAnswerIsNotAnAnswer) {
  EXPECT_EQ(failedWith("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}"),
            "3 the connection ended in the middle of the server's answer");
  EXPECT_EQ(failedWith("HTTP/1.1 404 Not Found\r\nContent-Length: 50\r\n\r\n{\"error\":\"x\"}"),
            "3 the connection ended in the middle of the server's answer");
  const std::string unreachable = "3 cannot reach the server at " + server_.url() + ": ";
  EXPECT_THAT(failedWith(""), StartsWith(unreachable)) << "closed without an answer";
  EXPECT_THAT(failedWith("SSH-2.0-OpenSSH_9\r\n"), StartsWith(unreachable));
}

TEST_F(ApiClientTest, WithoutAServerTheAddressIsNamed) {
  std::string url;
  {
    const test::ScriptedServer gone;
    url = gone.url();
  }
  const ApiClient client(url, "");
  std::ostringstream file;
  EXPECT_THAT(failed([&] { (void)client.get("/"); }), StartsWith("3 cannot reach the server at " + url + ": "));
  EXPECT_THAT(failed([&] { (void)client.download("/v1/backup", file, Millis{0}); }),
              StartsWith("3 cannot reach the server at " + url + ": "));
}

TEST_F(ApiClientTest, AWrongAddressIsAFaultOfTheCommandLine) {
  for (const char* wrong : {"", "127.0.0.1:8000", "ftp://127.0.0.1", "http://", "http://h:port", "/v2"}) {
    EXPECT_EQ(refusedAddress(wrong),
              "2 '" + std::string(wrong) + "' is not an address: write it like http://127.0.0.1:8000");
  }
  EXPECT_EQ(refusedAddress("http://[::1]:8000/prefix"), "");
  EXPECT_EQ(refusedAddress("https://127.0.0.1:1"), "");
}

TEST_F(ApiClientTest, AKeyUnfitForAHeaderIsRefused) {
  for (const std::string& wrong : {std::string("a b"), std::string("a\r\nX: y"), std::string(" "),
                                   std::string("k\xc3\xa9y"), std::string("\x7f")}) {
    EXPECT_EQ(refusedAddress("http://127.0.0.1", wrong),
              "2 the key holds blanks or characters that no key has: copy it again")
        << wrong;
  }
  EXPECT_EQ(refusedAddress("http://127.0.0.1", "!~"), "");
}

TEST_F(ApiClientTest, AMissingFileOfAuthoritiesIsNamed) {
  EXPECT_EQ(refusedAddress("https://127.0.0.1", "", "/nowhere/ca.pem"),
            "2 the file of certificate authorities '/nowhere/ca.pem' cannot be read: check --ca or JOBQ_CA");
  EXPECT_EQ(refusedAddress("http://127.0.0.1", "", "/nowhere/ca.pem"), "") << "no certificate is checked without TLS";
}

TEST_F(ApiClientTest, ASegmentCannotAddSegmentsToThePath) {
  EXPECT_EQ(ApiClient::segment("plain-Id_7.0~"), "plain-Id_7.0~");
  EXPECT_EQ(ApiClient::segment("a/../b?c#d"), "a%2F..%2Fb%3Fc%23d");
  EXPECT_EQ(ApiClient::segment("a b%\r\n\xc3\xa9"), "a%20b%25%0D%0A%C3%A9");
  EXPECT_THROW(ApiClient::segment(""), CommandError) << "an empty segment would name a different path";
  EXPECT_EQ(ApiClient::encode("a&b=c"), "a%26b%3Dc");
  EXPECT_EQ(ApiClient::encode(""), "");
}

TEST_F(ApiClientTest, AFileIsWrittenUnchanged) {
  const std::string file = std::string("\x00\r\n\xff", 4) + std::string(200'000, 'x');
  server_.answer(file, "200 OK", "Content-Type: application/octet-stream\r\n");
  std::ostringstream to;
  EXPECT_EQ(client_.download("/v1/backup", to, Millis{1'000}), file.size());
  EXPECT_TRUE(to.str() == file);
  EXPECT_THAT(server_.calls(), ElementsAre("POST /v1/backup"));
}

TEST_F(ApiClientTest, OnlyAWholeFileIsAFile) {
  std::ostringstream to;
  const auto download = [&](std::ostream& out) {
    return failed([&] { (void)client_.download("/v1/backup", out, Millis{0}); });
  };
  const std::string noFile = "3 the answer is not a file: check that the address is a jobq server's";
  server_.answer("{}", "200 OK", "Content-Type: application/json\r\n");
  EXPECT_EQ(download(to), noFile);
  server_.answerRaw("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\nbytes");
  EXPECT_EQ(download(to), noFile) << "the length is unknown";
  EXPECT_THAT(to.str(), IsEmpty());
  server_.answer(R"({"message":"another backup is being written"})", "409 Conflict");
  EXPECT_EQ(download(to), "1 another backup is being written");
  server_.answerRaw("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_EQ(download(to), "3 the connection ended in the middle of the server's answer");
  server_.answer("bytes", "200 OK", "Content-Type: application/octet-stream\r\n");
  std::ostream full(nullptr);
  EXPECT_EQ(download(full), "1 the file cannot be written: is the disk full?");
}

}  // namespace
}  // namespace jobq::cli
