// Tests of fetching pictures by URL, from a correct web server and from several faulty web servers.
#include <chrono>
#include <future>

#include "image_fixture.h"
#include "name_server.h"
#include "tiny_http.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::chrono::seconds kSoon{1};  // usual time: 100 ms

std::string urlInput(const std::string& url) { return "{\"url\":" + json::quoted(url) + "}"; }

class HandlerImageInPublic : public HandlerImage {
 protected:
  HandlerImageInPublic() : HandlerImage(false) {}
};

TEST_F(HandlerImage, FetchesAPicture) {
  const std::string file = pngOf(quarters(6, 4));
  TinyHttp server([&](const TinyRequest&, const TinyConnection& client) { client.reply(200, file); });
  const Picture result = process(urlInput(server.url("/a%20b.png?x=1")));
  EXPECT_EQ(result.width, 6);
  EXPECT_EQ(result.at(5, 3), kYellow);
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_EQ(server.requests()[0].target, "/a%20b.png?x=1");
}

TEST_F(HandlerImage, FollowsThreeRedirectsAndNoMore) {
  const std::string file = pngOf(quarters(6, 4));
  TinyHttp server([&](const TinyRequest& request, const TinyConnection& client) {
    const int left = request.target[1] - '0';
    if (left > 0) return client.redirect("/" + std::to_string(left - 1));
    client.reply(200, file);
  });
  EXPECT_EQ(process(urlInput(server.url("/3"))).width, 6);
  EXPECT_EQ(failureOf(urlInput(server.url("/4"))),
            server.url("/4") + " could not be fetched: there are more than 3 redirects; give the final address");
}

TEST_F(HandlerImage, NeverConnectsToAForbiddenAddressByRedirect) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.redirect("http://169.254.169.254/latest/meta-data/");
  });
  EXPECT_EQ(failureOf(urlInput(server.url("/meta"))),
            server.url("/meta") +
                " could not be fetched: the address 169.254.169.254 is link-local, multicast or "
                "reserved, which is never allowed; use a public address");
}

TEST_F(HandlerImage, NeverConnectsToAForbiddenAddress) {
  for (const char* host : {"169.254.1.1", "0.0.0.0", "224.0.0.1", "[fe80::1]", "[::ffff:169.254.169.254]",
                           "[64:ff9b::a9fe:a9fe]", "2852039166", "0xa9.0xfe.1.1"}) {
    EXPECT_THAT(failureOf(urlInput(std::string("http://") + host + "/")), HasSubstr("which is never allowed")) << host;
  }
}

TEST_F(HandlerImageInPublic, NeverConnectsToAPrivateAddressUnlessAllowed) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, "x"); });
  EXPECT_THAT(failureOf(urlInput(server.url())), EndsWith("the address is private, which is not allowed here; "
                                                          "use a public address or set net.allowPrivate"));
  for (const char* host : {"localhost", "10.0.0.1", "192.168.1.1", "[::1]", "127.1", "[::ffff:127.0.0.1]"}) {
    EXPECT_THAT(failureOf(urlInput(std::string("http://") + host + ":9/")), HasSubstr("which is not allowed here"))
        << host;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HandlerImage, IgnoresProxyVariables) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(404, ""); });
  setenv("http_proxy", "http://169.254.1.1:9", 1);
  setenv("ALL_PROXY", "http://169.254.1.1:9", 1);
  EXPECT_THAT(failureOf(urlInput(server.url())), HasSubstr("answered 404"));
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
}

TEST_F(HandlerImage, FollowsRedirectsToHttpOnly) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.redirect("file:///etc/passwd"); });
  EXPECT_THAT(failureOf(urlInput(server.url())), HasSubstr("the address leads to something other than http or https"));
}

TEST_F(HandlerImage, RefusesAnInvalidWebAddress) {
  for (const char* url : {"file:///etc/passwd", "ftp://example.com/a.png", "cat.png", "http://", "//host/a",
                          "http:// a/", "gopher://127.0.0.1/", "http://a\\u0000b/"}) {
    EXPECT_EQ(failureOf(std::string("{\"url\":\"") + url + "\"}"),
              "input.url must be an absolute http or https URL with a host")
        << url;
  }
}

TEST_F(HandlerImage, ReportsTheStatusOfTheServer) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(404, "no"); });
  EXPECT_EQ(failureOf(urlInput(server.url("/gone.png"))),
            server.url("/gone.png") +
                " answered 404 instead of 200; check that the address serves the picture without a login");
}

TEST_F(HandlerImage, KeepsPasswordsAndQueriesOutOfItsMessages) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(403, "no"); });
  const std::string url = "http://me:hunter2@127.0.0.1:" + std::to_string(server.port()) + "/a.png?token=hunter3#x";
  EXPECT_THAT(failureOf(urlInput(url)),
              AllOf(StartsWith(server.url("/a.png") + " answered 403"), Not(HasSubstr("hunter"))));
}

TEST_F(HandlerImage, BoundsTheSizeOfADownload) {
  configure({{"maxDownload", "100000"}});
  TinyHttp honest([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nContent-Length: 100001\r\n\r\n");
    client.hold();
  });
  TinyHttp endless([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\n\r\n");
    while (client.send(std::string(10'000, 'x'))) continue;
  });
  for (const TinyHttp* server : {&honest, &endless}) {
    EXPECT_EQ(failureOf(urlInput(server->url())),
              server->url() + " could not be fetched: the reply is larger than 100000 bytes; offer a smaller file");
  }
}

TEST_F(HandlerImage, BoundsTheTimeOfADownload) {
  configure({{"fetchTimeout", "150"}});
  TinyHttp silent([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  TinyHttp stuck([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\nhalf");
    client.hold();
  });
  for (const TinyHttp* server : {&silent, &stuck}) {
    EXPECT_EQ(
        failureOf(urlInput(server->url())),
        server->url() +
            " could not be fetched: the transfer took longer than 150 ms; use a faster server or raise the timeout");
  }
}

TEST_F(HandlerImage, StopsADownload) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  auto running = std::async(std::launch::async, [&] { return failureOf(urlInput(server.url("/slow"))); });
  server.awaitRequest();
  const testkit::PaceWatch watch;
  context_.stop();
  EXPECT_EQ(testkit::resultOf("the stopped job", running), "the job was stopped while fetching " + server.url("/slow"));
  watch.end("a stopped download", kSoon);
}

TEST_F(HandlerImage, StopsADownloadDuringANameLookupWithoutAnAnswer) {
  const SilentNameServer names("silent.test");
  auto running = std::async(std::launch::async, [&] { return failureOf(urlInput("http://silent.test/a.png")); });
  names.awaitQuestion();
  const testkit::PaceWatch watch;
  context_.stop();
  EXPECT_EQ(testkit::resultOf("the stopped job", running),
            "the job was stopped while fetching http://silent.test/a.png");
  watch.end("a stopped download", kSoon);
}

TEST_F(HandlerImage, BoundsTheTimeOfANameLookupWithoutAnAnswer) {
  configure({{"fetchTimeout", "150"}});
  const SilentNameServer names("silent.test");
  const testkit::PaceWatch watch;
  EXPECT_THAT(failureOf(urlInput("http://silent.test/a.png")), HasSubstr("the transfer took longer than 150 ms"));
  watch.end("a download without a name", kSoon);
}

TEST_F(HandlerImage, ReportsAnUnreachableServer) {
  int port = 0;
  {
    port = TinyHttp([](const TinyRequest&, const TinyConnection&) {}).port();
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  EXPECT_THAT(failureOf(urlInput(url)),
              AllOf(StartsWith(url + " could not be fetched: "), EndsWith("; check the address and try again")));
  EXPECT_THAT(failureOf(urlInput("http://no-such-host.invalid/")), HasSubstr("could not be fetched: "));
}

TEST_F(HandlerImage, RefusesATruncatedReplyAndAReplyWithoutAPicture) {
  TinyHttp cut([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\nhalf");
  });
  TinyHttp page([](const TinyRequest&, const TinyConnection& client) { client.reply(200, "<html>"); });
  TinyHttp empty([](const TinyRequest&, const TinyConnection& client) { client.reply(200, ""); });
  EXPECT_THAT(failureOf(urlInput(cut.url())), HasSubstr("could not be fetched: "));
  EXPECT_THAT(failureOf(urlInput(page.url())), HasSubstr("the picture is not a JPEG, PNG or WebP file"));
  EXPECT_THAT(failureOf(urlInput(empty.url())), HasSubstr("the picture is empty"));
}

}  // namespace
}  // namespace jobq::test
