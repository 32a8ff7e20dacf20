// The parts of http_client that need no connection: URLs, header fields, addresses, and answers while they arrive.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <fstream>
#include <string>

#include "http_client/address_guard.h"
#include "http_client/exchange.h"
#include "http_client/header_fields.h"
#include "http_client/incoming_answer.h"
#include "http_client/transfer.h"
#include "http_client/web_url.h"
#include "testkit/temporary_folder.h"

namespace jobq::http_client {
namespace {

struct GoodUrl {
  const char* text;
  const char* origin;
  const char* shown;
  bool isBare;
};

constexpr GoodUrl kGoodUrls[] = {
    {"http://example.com", "http://example.com:80", "http://example.com/", true},
    {"HTTPS://Example.COM/A", "https://example.com:443", "https://Example.COM/A", true},
    {"http://h:8080/a/../b", "http://h:8080", "http://h:8080/a/../b", true},
    {"http://h/?token=hunter2", "http://h:80", "http://h/", false},
    {"http://h/a#part", "http://h:80", "http://h/a", false},
    {"http://me:hunter2@h/a", "http://h:80", "http://h/a", false},
    {"http://h/a@b", "http://h:80", "http://h/a@b", true},
    {"http://h/?", "http://h:80", "http://h/", false},
    {"http://h/#", "http://h:80", "http://h/", false},
    {"http://:@h/", "http://h:80", "http://h/", false},
    {"http://0x7f.1/", "http://127.0.0.1:80", "http://127.0.0.1/", true},
    {"https://[2001:DB8:0::1]:8443/", "https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443/", true},
};

TEST(HttpClientUrl, EveryGoodOne) {
  for (const GoodUrl& row : kGoodUrls) {
    const auto url = WebUrl::read(row.text);
    ASSERT_TRUE(url) << row.text;
    EXPECT_EQ(url->origin(), row.origin) << row.text;
    EXPECT_EQ(url->shown(), row.shown) << row.text;
    EXPECT_EQ(url->isBare(), row.isBare) << row.text;
  }
}

TEST(HttpClientUrl, EveryBadOne) {
  const std::string longest = "http://h/" + std::string(WebUrl::kLongest - 9, 'a');
  EXPECT_TRUE(WebUrl::read(longest));
  for (const std::string& text : {std::string(),
                                  std::string("h"),
                                  std::string("//h/"),
                                  std::string("http:"),
                                  std::string("http://"),
                                  std::string("http:h"),
                                  std::string("http:/h"),
                                  std::string("http:///h"),
                                  std::string("http://?x"),
                                  std::string("http://@/"),
                                  std::string("http://a\\@b/"),
                                  std::string("http:\\\\h/"),
                                  std::string("http://a b/"),
                                  std::string("http://h/a b"),
                                  std::string("http://a\0b/", 11),
                                  std::string("http://h/\r\nX: y"),
                                  std::string("http://h/\x7f"),
                                  std::string("http://h:65536/"),
                                  std::string("http://[1.2.3.4]/"),
                                  std::string("ftp://h/"),
                                  std::string("file:///etc/passwd"),
                                  longest + "a"}) {
    EXPECT_FALSE(WebUrl::read(text)) << text.substr(0, 40);
  }
}

TEST(HttpClientUrl, FollowsALocation) {
  const auto url = WebUrl::read("http://h:81/a/b?x=1");
  ASSERT_TRUE(url);
  const auto followed = [&](const std::string& location) {
    const auto next = url->follow(location);
    return next ? next->origin() + " " + next->shown() : "(refused)";
  };
  EXPECT_EQ(followed("../c d"), "http://h:81 http://h:81/c%20d");
  EXPECT_EQ(followed("//g/"), "http://g:80 http://g/");
  EXPECT_EQ(followed("https://g:1/x?y"), "https://g:1 https://g:1/x");
  for (const char* location : {"file:///etc/passwd", "ftp://g/", "http://", "http://a\x01z/"}) {
    EXPECT_EQ(followed(location), "(refused)") << location;
  }
}

TEST(HttpClientUrl, ALoginStaysAtItsOrigin) {
  const auto url = WebUrl::read("http://me:pa%3ass@h:81/a");
  ASSERT_TRUE(url);
  const auto login = [&](const std::string& location) {
    const auto next = url->follow(location);
    std::string text;
    for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD}) {
      char* value = nullptr;
      if (next && curl_url_get(next->handle(), part, &value, 0) == CURLUE_OK) text += std::string(value) + " ";
      curl_free(value);
    }
    return text;
  };
  for (const char* same : {"/b", "http://h:81/b", "HTTP://H:81/b"}) EXPECT_EQ(login(same), "me pa%3ass ") << same;
  EXPECT_EQ(login("http://you@h:81/b"), "you ");
  for (const char* other : {"//g:81/b", "http://h/b", "https://h:81/b", "http://h:82/b"})
    EXPECT_EQ(login(other), "") << other;
}

TEST(HttpClientHeaders, HaveOnlyCharactersPermittedByHttp) {
  for (const char* name : {"X-One", "a", "!#$%&'*+-.^_`|~09"}) EXPECT_TRUE(isHeaderName(name)) << name;
  for (const char* name : {"", "a b", "a:", "a;", "a\r\nb", "\xc3\xa4"}) EXPECT_FALSE(isHeaderName(name)) << name;
  for (const char* value : {"", " a\tb ", "\xc3\xa4"}) EXPECT_TRUE(isHeaderValue(value)) << value;
  for (const char* value : {"a\r\nb", "a\nb", "\x7f", "\x1b[2J"}) EXPECT_FALSE(isHeaderValue(value)) << value;
  EXPECT_TRUE(hasHeader({{"content-TYPE", "a"}}, "Content-Type"));
  EXPECT_FALSE(hasHeader({{"Content", "a"}}, "Content-Type"));
}

std::string refusalFor(const char* address, bool allowPrivate) {
  sockaddr_storage storage{};
  const bool isV6 = std::strchr(address, ':') != nullptr;
  storage.ss_family = isV6 ? AF_INET6 : AF_INET;
  void* const bytes = isV6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(&storage)->sin6_addr)
                           : static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&storage)->sin_addr);
  EXPECT_EQ(inet_pton(storage.ss_family, address, bytes), 1) << address;
  const auto refused = refusalOf(storage, allowPrivate);
  return refused ? reasonOfRefusal(*refused) : "(permitted)";
}

TEST(HttpClientGuard, NamesTheRefusedAddress) {
  EXPECT_EQ(refusalFor("8.8.8.8", false), "(permitted)");
  EXPECT_EQ(refusalFor("127.0.0.1", true), "(permitted)");
  EXPECT_EQ(refusalFor("127.0.0.1", false),
            "the address is private, which is allowed only with net.allowPrivate = true");
  EXPECT_EQ(refusalFor("fe80::1", true),
            "the address fe80::1 is link-local, multicast or reserved, which is never allowed");
  EXPECT_EQ(refusalFor("::ffff:169.254.169.254", true),
            "the address ::ffff:169.254.169.254 is link-local, multicast or reserved, which is never allowed");
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  EXPECT_EQ(reasonOfRefusal(refusalOf(local, true).value()), "the address is neither IPv4 nor IPv6");
}

TEST(HttpClientAnswer, KeepsABodyUpToItsBound) {
  IncomingAnswer answer({5, 0}, false, 0);
  EXPECT_TRUE(answer.addHeadLine("HTTP/1.1 200 OK\r\n", 200));
  EXPECT_TRUE(answer.addHeadLine("\r\n", 200));
  EXPECT_TRUE(answer.addBody("abc"));
  EXPECT_TRUE(answer.addBody("de"));
  EXPECT_FALSE(answer.addBody("f"));
  EXPECT_TRUE(answer.bodyTooLarge());
  EXPECT_EQ(answer.answer().body, "abcde");
}

TEST(HttpClientAnswer, DropsBytesBeyondTheBoundAndEndsWithEnough) {
  IncomingAnswer answer({2, 6}, false, 0);
  EXPECT_TRUE(answer.addHeadLine("HTTP/1.1 200 OK\r\n", 200));
  EXPECT_TRUE(answer.addHeadLine("Content-Length: 1000000\r\n", 200));
  EXPECT_TRUE(answer.addHeadLine("\r\n", 200));
  EXPECT_TRUE(answer.addBody("abcde"));
  EXPECT_FALSE(answer.hasEnough());
  EXPECT_FALSE(answer.addBody("f"));
  EXPECT_TRUE(answer.hasEnough());
  EXPECT_FALSE(answer.bodyTooLarge());
  EXPECT_EQ(answer.answer().body, "ab");
}

TEST(HttpClientAnswer, OnlyAFollowedRedirectLeadsOn) {
  for (const bool follows : {false, true}) {
    IncomingAnswer answer({5, 0}, follows, 0);
    answer.addHeadLine("HTTP/1.1 302 Found\r\n", 302);
    answer.addHeadLine("Location: /next\r\n", 302);
    EXPECT_EQ(answer.addHeadLine("\r\n", 302), !follows);
    EXPECT_EQ(answer.leadsOn(), follows);
    EXPECT_EQ(answer.location(), "/next");
  }
}

TEST(HttpClientAnswer, HeadsOfATransferAreBoundedTogether) {
  IncomingAnswer answer({5, 0}, true, IncomingAnswer::kMostHead - 20);
  EXPECT_TRUE(answer.addHeadLine("HTTP/1.1 200 OK\r\n", 200));
  EXPECT_FALSE(answer.addHeadLine("A: b\r\n", 200));
  EXPECT_TRUE(answer.headTooLarge());
}

TEST(HttpClientReasons, TellTheStatusAndTheHostOfARedirect) {
  EXPECT_EQ(reasonOfStatus({{404, "", {}}, "", {}}, "receiver"), "the receiver answered 404");
  EXPECT_EQ(reasonOfStatus({{302, "", {}}, "h", {}}, "server"),
            "the server answered with a redirect to h, which is not followed: give the final address");
  EXPECT_EQ(inWords(Millis(2'000)), "2 s");
  EXPECT_EQ(inWords(Millis(2'001)), "2001 ms");
}

// The folder is quick, and without one libcurl keeps what it has read of the file.
TEST(HttpClientTrust, HasEitherTheFolderOrTheFile) {
  const testkit::TemporaryFolder folder;
  const std::string path = folder / "";
  EXPECT_EQ(needlessAuthorities(nullptr), CURLOPT_CAPATH);
  EXPECT_EQ(needlessAuthorities(path.c_str()), CURLOPT_CAPATH);
  std::ofstream(folder / "ca-certificates.crt") << "all";
  EXPECT_EQ(needlessAuthorities(path.c_str()), CURLOPT_CAPATH);
  std::ofstream(folder / "5ad8a5d6.0") << "one";
  EXPECT_EQ(needlessAuthorities(path.c_str()), CURLOPT_CAINFO);
}

}  // namespace
}  // namespace jobq::http_client
