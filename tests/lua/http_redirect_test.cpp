// Redirects followed by http.get and http.post, and the parts of a request kept by a redirect.
#include "http_fixture.h"
#include "name_server.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using LuaHttpRedirect = LuaHttp;

constexpr const char* kSecrets = "{headers = {Authorization = 'Bearer x', COOKIE = 'c=1', ['X-Other'] = 'y'}}";

TinyHttp::Answer leadingTo(std::string location, int status = 302) {
  return [location, status](const TinyRequest&, const TinyConnection& client) {
    client.reply(status, "elsewhere", "Location: " + location + "\r\n");
  };
}

std::string onlyHead(const TinyHttp& server) {
  const auto requests = server.requests();
  return requests.size() == 1 ? requests[0].head : "(" + std::to_string(requests.size()) + " requests)";
}

TEST_F(LuaHttpRedirect, FollowsFiveAndNoMore) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    const int left = request.target[1] - '0';
    if (left > 0) return client.redirect("/" + std::to_string(left - 1));
    client.reply(200, "there");
  });
  EXPECT_THAT(get(server.url("/5")), HasSubstr("there"));
  EXPECT_EQ(server.requests().size(), 6U);
  EXPECT_EQ(get(server.url("/6")), "there are more than 5 redirects: give the final address");
  EXPECT_EQ(server.requests().size(), 12U);
}

TEST_F(LuaHttpRedirect, EndsALoop) {
  TinyHttp server(leadingTo("/again"));
  EXPECT_EQ(get(server.url("/again")), "there are more than 5 redirects: give the final address");
}

TEST_F(LuaHttpRedirect, ResolvesRelativeAddresses) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    if (request.target == "/a/b/c?x=1") return client.redirect("../d e?y=\xc3\xa4");
    client.reply(200, request.target);
  });
  EXPECT_THAT(get(server.url("/a/b/c?x=1")), StartsWith(R"({"body":"/a/d%20e?y=%c3%a4")"));
}

TEST_F(LuaHttpRedirect, OtherStatusesBecomeAGet) {
  for (const int status : {301, 302, 303}) {
    TinyHttp server([status](const TinyRequest& request, const TinyConnection& client) {
      if (request.target == "/") return client.reply(status, "", "Location: /next\r\n");
      client.reply(200, request.method + request.body);
    });
    EXPECT_THAT(post(server.url(), "{a = 1}", "{headers = {['X-Other'] = 'y'}}"), StartsWith(R"({"body":"GET",)"))
        << status;
    ASSERT_EQ(server.requests().size(), 2U);
    EXPECT_THAT(server.requests()[1].head, AllOf(Not(HasSubstr("Content-")), HasSubstr("\r\nX-Other: y\r\n")));
  }
}

TEST_F(LuaHttpRedirect, SomeKeepMethodAndBody) {
  for (const int status : {307, 308}) {
    TinyHttp server([status](const TinyRequest& request, const TinyConnection& client) {
      if (request.target == "/") return client.reply(status, "", "Location: /next\r\n");
      client.reply(200, request.method + request.body);
    });
    EXPECT_THAT(post(server.url(), "json.array{1}"), StartsWith(R"({"body":"POST[1]",)")) << status;
    ASSERT_EQ(server.requests().size(), 2U);
    EXPECT_THAT(server.requests()[1].head, HasSubstr("\r\nContent-Type: application/json\r\n"));
  }
}

TEST_F(LuaHttpRedirect, AStatusWithoutALocationIsAnAnswer) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    client.reply(std::stoi(request.target.substr(1)), "here", request.target == "/304" ? "Location: /x\r\n" : "");
  });
  for (const std::string status : {"301", "302", "304", "307"}) {
    EXPECT_THAT(get(server.url("/" + status)), HasSubstr("\"status\":" + status));
  }
  EXPECT_EQ(server.requests().size(), 4U);
}

TEST_F(LuaHttpRedirect, DoesNotWaitForTheBodyOfARedirect) {
  configure({{"httpBody", "1024"}});
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    if (request.target == "/next") return client.reply(200, "there");
    client.send("HTTP/1.1 302 X\r\nLocation: /next\r\nContent-Length: 100000000\r\n\r\n");
    client.hold();
  });
  EXPECT_THAT(get(server.url()), HasSubstr("there"));
}

TEST_F(LuaHttpRedirect, SecretsAreNotSentToADifferentHost) {
  const NameServer names("other.test", {"127.0.0.1"});
  TinyHttp other(saying("other"));
  for (const std::string& url :
       {other.url(), "http://other.test:" + std::to_string(other.port()) + "/"}) {  // another port, another name
    TinyHttp server(leadingTo(url, 307));
    const std::size_t before = other.requests().size();
    EXPECT_THAT(get(server.url(), kSecrets), HasSubstr("other"));
    EXPECT_THAT(onlyHead(server),
                AllOf(HasSubstr("\r\nAuthorization: Bearer x\r\n"), HasSubstr("\r\nCOOKIE: c=1\r\n")));
    ASSERT_EQ(other.requests().size(), before + 1);
    EXPECT_THAT(other.requests().back().head,
                AllOf(Not(HasSubstr("Bearer")), Not(HasSubstr("c=1")), HasSubstr("\r\nX-Other: y\r\n")));
  }
}

TEST_F(LuaHttpRedirect, SecretsGoOnToTheSameHost) {
  TinyHttp server([&server](const TinyRequest& request, const TinyConnection& client) {
    if (request.target == "/next") return client.reply(200, "there");
    client.redirect(server.url("/next"));
  });
  EXPECT_THAT(get(server.url(), kSecrets), HasSubstr("there"));
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_THAT(server.requests()[1].head, AllOf(HasSubstr("Authorization: Bearer x"), HasSubstr("COOKIE: c=1")));
}

TEST_F(LuaHttpRedirect, SecretsDoNotComeBack) {
  TinyHttp first([](const TinyRequest& request, const TinyConnection& client) {
    if (request.target.starts_with("/back")) return client.reply(200, "there");
    client.redirect(request.target.substr(1));
  });
  TinyHttp second(leadingTo(first.url("/back")));
  EXPECT_THAT(get(first.url("/" + second.url()), kSecrets), HasSubstr("there"));
  ASSERT_EQ(first.requests().size(), 2U);
  EXPECT_THAT(first.requests()[1].head, AllOf(Not(HasSubstr("Bearer")), Not(HasSubstr("c=1"))));
}

TEST_F(LuaHttpRedirect, AUserInTheUrlIsNotSentToADifferentHostEither) {
  TinyHttp other(saying("other"));
  TinyHttp server(leadingTo(other.url()));
  get("http://me:secret@127.0.0.1:" + std::to_string(server.port()) + "/");
  EXPECT_THAT(onlyHead(server), HasSubstr("\r\nAuthorization: Basic "));
  EXPECT_THAT(onlyHead(other), Not(HasSubstr("Authorization")));
}

TEST_F(LuaHttpRedirect, LeadsToTheWebOnly) {
  for (const std::string& location :
       {std::string("file:///etc/passwd"), std::string("ftp://127.0.0.1/a"), std::string("gopher://127.0.0.1/"),
        std::string("javascript:alert(1)"), std::string("http://"), std::string("http://a\x01z/"),
        "/" + std::string(8'192, 'a')}) {
    TinyHttp server(leadingTo(location));
    EXPECT_EQ(get(server.url()), "the redirect does not lead to an http or https URL with a host")
        << location.substr(0, 40);
  }
}

TEST_F(LuaHttpRedirect, NeverLeadsToAForbiddenAddress) {
  const NameServer names("metadata.test", {"169.254.169.254"});
  for (const char* location : {"http://169.254.169.254/latest/meta-data/", "//2852039166/", "http://metadata.test/",
                               "http://[::ffff:169.254.169.254]/"}) {
    TinyHttp server(leadingTo(location));
    EXPECT_THAT(get(server.url()),
                AllOf(StartsWith("the address "), HasSubstr(" is link-local, multicast or reserved, which is never")));
  }
}

}  // namespace
}  // namespace jobq::test
