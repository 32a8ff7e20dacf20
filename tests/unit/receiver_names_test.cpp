// The names of webhook receivers. Databases hold the names, so the expectations here are fixed texts.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/jobs/webhook_url.h"
#include "core/webhooks/curl_receiver_names.h"

namespace {

using namespace jobq;

struct NameRow {
  const char* url;
  const char* name;
};

std::string nameOf(std::string_view url) { return CurlReceiverNames().nameOf(url); }

// Each URL is accepted at submission, so a database may hold the name.
constexpr NameRow kStored[] = {
    {"http://hooks.example.com/a", "hooks.example.com"},
    {"https://Hooks.Example.COM:8443/a:b@c?d#e", "hooks.example.com:8443"},
    {"HTTP://user:pa%40ss@h:1", "h:1"},
    {"http://@h/", "h"},
    {"http://:@h/", "h"},
    {"http://h", "h"},
    {"http://h?x=http://other/", "h"},
    {"http://h#@other", "h"},
    {"http://h/%41%20?b=%2F", "h"},
    {"http://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example"},
    {"http://my_service-1.internal/", "my_service-1.internal"},
    {"http://0x7f.example/", "0x7f.example"},
    {"http://10.0.0.1x/", "10.0.0.1x"},
    // Ports.
    {"http://h:/", "h"},
    {"http://h:80/", "h"},
    {"http://h:0080/", "h"},
    {"https://h:443/", "h"},
    {"https://h:80/", "h:80"},
    {"http://h:443/", "h:443"},
    {"http://h:00443/", "h:443"},
    {"http://h:65535/", "h:65535"},
    // Final dots.
    {"https://h.:443/", "h"},
    {"http://Example.com.:8080/", "example.com:8080"},
    {"http://127.0.0.1./", "127.0.0.1"},
    {"http://127.1./", "127.0.0.1"},
    {"http://0x7f000001.:81/", "127.0.0.1:81"},
    // IPv4 addresses.
    {"http://127.0.0.1/x", "127.0.0.1"},
    {"http://127.1/x", "127.0.0.1"},
    {"http://2130706433/x", "127.0.0.1"},
    {"http://0x7f000001/x", "127.0.0.1"},
    {"http://0X7F.0.0.1/x", "127.0.0.1"},
    {"http://0177.0.0.1:8443/x", "127.0.0.1:8443"},
    // IPv6 addresses.
    {"http://[::1]/", "[0:0:0:0:0:0:0:1]"},
    {"http://[0::1]/", "[0:0:0:0:0:0:0:1]"},
    {"http://[0000:0:0:0:0:0:0:0001]:80/", "[0:0:0:0:0:0:0:1]"},
    {"http://[::0.0.0.1]/", "[0:0:0:0:0:0:0:1]"},
    {"https://[2001:4860::ABCD]:80/", "[2001:4860:0:0:0:0:0:abcd]:80"},
    {"http://[2001:4860:3:4:5:6:7::]/", "[2001:4860:3:4:5:6:7:0]"},
    {"http://[2001:4860:0:1::2]:8443/", "[2001:4860:0:1:0:0:0:2]:8443"},
    {"http://[::ffff:127.0.0.1]/", "127.0.0.1"},
    {"http://[::FFFF:7f00:1]:81/", "127.0.0.1:81"},
    {"http://[0:0:0:0:0:ffff:7f00:0001]:80/", "127.0.0.1"},
    {"http://[64:ff9b::8.8.8.8]/", "[64:ff9b:0:0:0:0:808:808]"},
    // Files, and the schemes of other transports.
    {"file:///calls", "file"},
    {"FILE:///calls", "file"},
    {"announce://Room.Example:99/x", "room.example:99"},
    {"announce://Room.Example/x", "room.example"},
    {"announce:room", "announce"},
    {"announce:/room", "announce"},
    {"Announce:///room", "announce"},
};

TEST(ReceiverNames, NamesOfAcceptedUrlsStay) {
  const WebhookRules rules{true, {"http", "https", "file", "announce"}};
  for (const NameRow& row : kStored) {
    EXPECT_EQ(nameOf(row.url), row.name) << row.url;
    if (std::string_view(row.url).starts_with("FILE")) continue;
    EXPECT_TRUE(checkWebhook(row.url, rules)) << row.url;
  }
}

TEST(ReceiverNames, DecodeAHost) {
  EXPECT_EQ(nameOf("http://%48ooks.example.com/"), "hooks.example.com");
  EXPECT_EQ(nameOf("http://%31%32%37.1/"), "127.0.0.1");
}

TEST(ReceiverNames, NamesSimilarToAddressesAreNamesOfHosts) {
  for (const char* host : {"256.1", "1.2.3.4.5", "4294967296", "0x", "1..2", "08.1"}) {
    EXPECT_EQ(nameOf("http://" + std::string(host) + "/"), host);
  }
}

TEST(ReceiverNames, NamesOfTextsWithoutAHostEndBeforeTheFirstColon) {
  for (const char* text : {"http://", "HTTP:///h/x", "http:/h", "http://?x", "http://#x", "http://:80/", "http://u@/",
                           "http://./", "http://[::1", "http://[zz]/", "http://h:65536/", "http://a b/", "http"}) {
    EXPECT_EQ(nameOf(text), "http") << text;
  }
  EXPECT_EQ(nameOf("file:calls"), "file");
  EXPECT_EQ(nameOf("mailto:a@b"), "mailto");
  EXPECT_EQ(nameOf(std::string_view("http://a\0b/", 11)), "http");
  EXPECT_EQ(nameOf("http://" + std::string(9'000'000, 'h')), "http") << "longer than libcurl reads";
}

TEST(ReceiverNames, AreEmptyForAnEmptyTextOnly) {
  EXPECT_EQ(nameOf("No URL"), "no url");
  EXPECT_EQ(nameOf("://H/"), "://h/");
  EXPECT_EQ(nameOf(":"), ":");
  EXPECT_EQ(nameOf(""), "");
}

}  // namespace
