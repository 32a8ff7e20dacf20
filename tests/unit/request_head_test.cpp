// Tests of the head of a request: the parsed fields, the status of each refusal, and equal results for every split into
// pieces.
#include "core/http/transport/request_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace {

using namespace jobq;

std::string get(const std::string& fields, const std::string& line = "GET /a HTTP/1.1") {
  return line + "\r\nHost: h\r\n" + fields + "\r\n";
}

int statusOf(const std::string& bytes) {
  const auto parsed = parseHead(bytes);
  return parsed ? 200 : parsed.failure().status;
}

RequestHead headOf(const std::string& bytes) {
  auto parsed = parseHead(bytes);
  if (!parsed) {
    ADD_FAILURE() << parsed.failure().sentence;
    return {};
  }
  return *std::move(parsed);
}

TEST(RequestHead, IsReadAsSent) {
  const std::string bytes = get("Content-Length:  12 \r\nX-Odd: \ta\tb \r\nEmpty:\r\n", "POST /v2/x?y=%20 HTTP/1.1");
  const RequestHead head = headOf(bytes);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/v2/x?y=%20");
  EXPECT_EQ(head.contentLength, 12U);
  EXPECT_TRUE(head.hasBody());
  EXPECT_TRUE(head.keepAlive);
  ASSERT_EQ(head.fields.size(), 4U);
  EXPECT_EQ(head.fields[2], RequestHead::Field("X-Odd", "a\tb"));
  EXPECT_EQ(head.fields[3], RequestHead::Field("Empty", ""));
}

TEST(RequestHead, TargetsLoseTheAuthority) {
  const auto target = [](const std::string& text) {
    const std::string bytes = get("", "GET " + text + " HTTP/1.1");
    return std::string(headOf(bytes).target);
  };
  EXPECT_EQ(target("http://host:80/a?b"), "/a?b");
  EXPECT_EQ(target("HTTPS://host"), "/");
  EXPECT_EQ(statusOf(get("", "OPTIONS * HTTP/1.1")), 200);
  for (const char* bad : {"*", "host:80", "ftp://h/", "http:///a", "a", "http://h?q", "/a\tb", "/\x7f"}) {
    EXPECT_EQ(statusOf(get("", std::string("GET ") + bad + " HTTP/1.1")), 400) << bad;
  }
  EXPECT_EQ(statusOf(get("", "CONNECT h:1 HTTP/1.1")), 400);
}

TEST(RequestHead, VersionsDecideAboutTheConnection) {
  const auto keeps = [](const std::string& version, const std::string& fields) {
    const std::string bytes = get(fields, "GET / HTTP/" + version);
    return headOf(bytes).keepAlive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_TRUE(keeps("1.9", ""));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: x, Keep-Alive\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: keep-alive, CLOSE\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: keep-alive\r\nconnection: close\r\n"));
  for (const char* version : {"HTTP/2.0", "HTTP/0.9", "HTTP/3.1"}) {
    EXPECT_EQ(statusOf(get("", std::string("GET / ") + version)), 505) << version;
  }
  for (const char* version : {"", " http/1.1", " HTTP/1", " HTTP/1.1x", " HTTP/a.1", " HTTP/11", "  HTTP/1.1"}) {
    EXPECT_EQ(statusOf(get("", std::string("GET /") + version)), 400) << version;
  }
}

TEST(RequestHead, AmbiguousHeadsAreRefused) {
  const std::pair<const char*, int> cases[] = {
      {"Content-Length: 1\r\nContent-Length: 1\r\n", 400},
      {"Content-Length: 1\r\nContent-Length: 2\r\n", 400},
      {"Content-Length: 1, 1\r\n", 400},
      {"Content-Length: +1\r\n", 400},
      {"Content-Length: -1\r\n", 400},
      {"Content-Length:\r\n", 400},
      {"Content-Length: 9223372036854775808\r\n", 400},
      {"Content-Length: 99999999999999999999\r\n", 400},
      {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked, chunked\r\n", 400},
      {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Transfer-Encoding: chunked, gzip\r\n", 400},
      {"Transfer-Encoding:\r\n", 400},
      {"Transfer-Encoding: gzip, chunked\r\n", 501},
      {"Transfer-Encoding: identity\r\n", 501},
      {"Host: other\r\n", 400},
      {"Authorization: a\r\nauthorization: b\r\n", 400},
      {"Authorization: a\r\nAuthorization: a\r\n", 400},
      {"Expect: more\r\n", 417},
      {" folded: x\r\n", 400},
      {"a: b\r\n c\r\n", 400},
      {"a : b\r\n", 400},
      {": b\r\n", 400},
      {"ab\r\n", 400},
      {"a: b\rc\r\n", 400},
      {"a: b\nc: d\r\n", 400},
      {"a\x01: b\r\n", 400},
  };
  for (const auto& [fields, status] : cases) EXPECT_EQ(statusOf(get(fields)), status) << fields;
  EXPECT_EQ(statusOf(get(std::string("a: b\0c\r\n", 8))), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
  EXPECT_EQ(statusOf("GET / HTTP/1.0\r\n\r\n"), 200) << "HTTP/1.0 requires no Host";
  EXPECT_EQ(statusOf(get("Transfer-Encoding: chunked\r\n", "POST / HTTP/1.0")), 400);
  EXPECT_EQ(statusOf(get("Content-Length: 9223372036854775807\r\n")), 200);
  EXPECT_TRUE(headOf(get("Transfer-Encoding: , Chunked ,\r\n")).chunked);
}

TEST(RequestHead, LimitsAreExact) {
  std::string fields;
  for (std::size_t i = 1; i < kMaxFields; ++i) fields += "a: b\r\n";
  EXPECT_EQ(statusOf(get(fields)), 200);
  EXPECT_EQ(statusOf(get(fields + "a: b\r\n")), 431);
  const std::string target = "/" + std::string(kMaxTarget - 1, 'x');
  EXPECT_EQ(statusOf(get("", "GET " + target + " HTTP/1.1")), 200);
  EXPECT_EQ(statusOf(get("", "GET " + target + "x HTTP/1.1")), 414);
  const std::size_t frame = get("a: \r\n").size();
  EXPECT_EQ(statusOf(get("a: " + std::string(kMaxHead - frame, 'x') + "\r\n")), 200);
  EXPECT_EQ(statusOf(get("a: " + std::string(kMaxHead - frame + 1, 'x') + "\r\n")), 431);
  EXPECT_EQ(statusOf("GET /" + std::string(kMaxHead, 'x')), 414);
}

HeadScanner::State scanInPieces(const std::string& bytes, std::mt19937& dice, std::size_t& size) {
  HeadScanner scanner;
  HeadScanner::State state = HeadScanner::State::incomplete;
  for (std::size_t seen = 0; seen < bytes.size() && state == HeadScanner::State::incomplete;) {
    seen = std::min(bytes.size(), seen + 1 + dice() % 7);
    state = scanner.scan(std::string_view(bytes).substr(0, seen));
  }
  size = scanner.size();
  return state;
}

TEST(HeadScanner, FindsTheSameEndHoweverTheBytesCome) {
  std::mt19937 dice(1);
  for (const std::string& bytes :
       {get("a: b\r\n"), "\r\n\r\n" + get(""), get("") + "body", std::string("GET /a\r\n"), std::string("\r\n\r\n\r\n"),
        std::string("GET / HTTP/1.1\n"), std::string("\x16\x03\x01\n"), get("a: b\n")}) {
    HeadScanner whole;
    const HeadScanner::State state = whole.scan(bytes);
    for (int i = 0; i < 50; ++i) {
      std::size_t size = 0;
      EXPECT_EQ(scanInPieces(bytes, dice, size), state) << bytes;
      if (state == HeadScanner::State::complete) {
        EXPECT_EQ(size, whole.size());
      }
    }
    if (state == HeadScanner::State::broken) {
      EXPECT_NE(statusOf(bytes), 200) << bytes;
    }
  }
}

TEST(HeadScanner, GivesUpAtTheLimitAndNotBefore) {
  std::string endless = "GET / HTTP/1.1\r\na: ";
  endless.resize(kMaxHead, 'x');
  EXPECT_EQ(HeadScanner().scan(endless), HeadScanner::State::incomplete);
  EXPECT_EQ(HeadScanner().scan(endless + "x"), HeadScanner::State::broken);
  std::string fields;
  for (std::size_t i = 0; i <= kMaxFields; ++i) fields += "a: b\r\n";
  EXPECT_EQ(HeadScanner().scan("GET / HTTP/1.1\r\n" + fields), HeadScanner::State::broken);
}

}  // namespace
