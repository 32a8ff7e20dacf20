// Tests of the accepted webhook URLs (core/http/API.md, "Webhook URLs"), and of addresses recognised in every spelling.
#include "core/jobs/webhook_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace jobq;
using testing::HasSubstr;

/// Which receivers may be called: always, only with net.allowPrivate, or never.
enum class May { always, ifAllowed, never };

struct UrlRow {
  const char* url;
  May may;
  const char* says = "";  ///< a part of the refusal, with net.allowPrivate = true
};

constexpr const char* kAbsolute = "must be an absolute http or https URL with a host";
constexpr const char* kNever = "never called";
constexpr const char* kPort = "port";
constexpr const char* kHost = "character that hosts cannot have";
constexpr const char* kNumber = "ends in a number";

constexpr UrlRow kShapes[] = {
    {"http://example.com", May::always},
    {"https://example.com/", May::always},
    {"HTTP://EXAMPLE.COM/Hook", May::always},
    {"hTTps://h", May::always},
    {"http://h?a=b", May::always},
    {"http://h#part", May::always},
    {"https://h/a/../b;c=1,2/~x!$'()*+&=:@{}|^\"<>`[]", May::always},
    {"https://h/?u=http://10.0.0.1/@127.0.0.1", May::always},
    {"https://h/%20%C3%A4?a=%26#%41", May::always},
    {"https://user:pa%40ss@example.com:8443/x", May::always},
    {"http://@h/", May::always},
    {"http://:@h/", May::always},
    {"http://h:1/", May::always},
    {"http://h:65535", May::always},
    {"http://h:0080/", May::always},
    {"http://h:/", May::always},
    {"http://localhost:3000/x", May::always},
    {"http://my_service-1.internal/", May::always},
    {"http://xn--mnchen-3ya.example/", May::always},
    {"http://example.com./", May::always},
    {"http://127.0.0.1.example.com/", May::always},
    {"http://0x7f.example/", May::always},
    {"http://10.0.0.1x/", May::always},
    {"http://0xg/", May::always},

    {"", May::never, kAbsolute},
    {"example.com/x", May::never, kAbsolute},
    {"example.com:80/x", May::never, kAbsolute},
    {"/x", May::never, kAbsolute},
    {"//example.com/x", May::never, kAbsolute},
    {":", May::never, kAbsolute},
    {"://h", May::never, kAbsolute},
    {"1http://h/", May::never, kAbsolute},
    {"ht_tp://h/", May::never, kAbsolute},
    {"http", May::never, kAbsolute},
    {"http:", May::never, kAbsolute},
    {"http:h", May::never, kAbsolute},
    {"http:/h/x", May::never, kAbsolute},
    {"http://", May::never, kAbsolute},
    {"http:///x", May::never, kAbsolute},
    {"http://?x", May::never, kAbsolute},
    {"http://#x", May::never, kAbsolute},
    {"http://:80/", May::never, kAbsolute},
    {"http://user@/x", May::never, kAbsolute},
    {"http://./", May::never, kAbsolute},
    {"ftp://h/x", May::never, kAbsolute},
    {"file:///etc/passwd", May::never, kAbsolute},
    {"gopher://127.0.0.1:6379/_x", May::never, kAbsolute},
    {"javascript:alert(1)", May::never, kAbsolute},
    {"httpss://h/", May::never, kAbsolute},

    {"http://h:0/", May::never, kPort},
    {"http://h:65536/", May::never, kPort},
    {"http://h:99999999999999999999/", May::never, kPort},
    {"http://h:80a/", May::never, kPort},
    {"http://h:a/", May::never, kPort},
    {"http://h:-1/", May::never, kPort},
    {"http://h:+80/", May::never, kPort},
    {"http://h:80:80/", May::never, kPort},
    {"http://1:2:3::4/", May::never, kPort},

    {"http://a b/", May::never, "blank"},
    {" http://h/", May::never, "blank"},
    {"http://h/\t", May::never, "blank"},
    {"http://h/\r\nHost:x", May::never, "blank"},
    {"http://h/\x7f", May::never, "blank"},
    {"http://h/\xc3\xa4", May::never, "percent-encode everything else"},
    {"http://m\xc3\xbcnchen.example/", May::never, "punycode"},
    {"http://127.0.0.1\xef\xbc\x8e/", May::never, "punycode"},
    {"http://h/%", May::never, "%25"},
    {"http://h/%4", May::never, "%25"},
    {"http://h/?a=50%&b", May::never, "%25"},
    {"http://h\\@evil/", May::never, "backslash"},
    {"http:\\\\h/", May::never, "backslash"},
    {"http://h/a\\b", May::never, "backslash"},
    {"http://a@b@c/", May::never, "user or password"},
    {"http://a[b@c/", May::never, "user or password"},
    {"http://%31%32%37.0.0.1/", May::never, kHost},
    {"http://h%2fevil/", May::never, kHost},
    {"http://h,g/", May::never, kHost},
    {"http://h;g/", May::never, kHost},
    {"http://<h>/", May::never, kHost},
    {"http://h]/", May::never, kHost},
    {"http://h[::1]/", May::never, kHost},
    {"http://.h/", May::never, "looked up"},
    {"http://a..b/", May::never, "looked up"},
    {"http://a../", May::never, "looked up"},
    {"http://1../", May::never, "looked up"},
};

constexpr UrlRow kAddresses[] = {
    {"http://8.8.8.8/", May::always},
    {"http://8.8.8.8./", May::always},
    {"http://134744072/", May::always},
    {"http://[2001:4860:4860::8888]:443/", May::always},
    {"http://[::ffff:8.8.8.8]/", May::always},
    {"http://172.15.0.1/", May::always},
    {"http://172.32.0.1/", May::always},
    {"http://100.63.0.1/", May::always},
    {"http://100.128.0.1/", May::always},

    {"http://127.0.0.1/", May::ifAllowed},
    {"http://127.0.0.1./", May::ifAllowed},
    {"http://127.1/", May::ifAllowed},
    {"http://127.1./", May::ifAllowed},
    {"http://127.0.1/", May::ifAllowed},
    {"http://127.65535/", May::ifAllowed},
    {"http://2130706433/", May::ifAllowed},
    {"http://0x7f000001/", May::ifAllowed},
    {"http://0X7F000001/", May::ifAllowed},
    {"http://0x7f.0.0.0x1/", May::ifAllowed},
    {"http://0177.0.0.1/", May::ifAllowed},
    {"http://017700000001/", May::ifAllowed},
    {"http://00000000177.0x00000.1/", May::ifAllowed},
    {"http://user:pw@127.0.0.1:80/", May::ifAllowed},
    {"http://8.8.8.8@127.0.0.1/", May::ifAllowed},
    {"http://8.8.8.8:80@127.0.0.1/", May::ifAllowed},
    {"http://127.0.0.1?@8.8.8.8", May::ifAllowed},
    {"http://127.0.0.1#@8.8.8.8", May::ifAllowed},
    {"http://10.0.0.1/", May::ifAllowed},
    {"http://012.1/", May::ifAllowed},
    {"http://172.16.0.1/", May::ifAllowed},
    {"http://172.31.255.255/", May::ifAllowed},
    {"http://192.168.0.1/", May::ifAllowed},
    {"http://100.64.0.1/", May::ifAllowed},
    {"http://[::1]/", May::ifAllowed},
    {"http://[0:0:0:0:0:0:0:1]:80/", May::ifAllowed},
    {"http://[fd00::1]/", May::ifAllowed},
    {"http://[::ffff:127.0.0.1]/", May::ifAllowed},
    {"http://[::FFFF:7F00:1]/", May::ifAllowed},
    {"http://[64:ff9b::10.0.0.1]/", May::ifAllowed},
    {"http://[2002:7f00:1::]/", May::ifAllowed},

    {"http://0.0.0.0/", May::never, kNever},
    {"http://0/", May::never, kNever},
    {"http://00/", May::never, kNever},
    {"http://169.254.169.254/", May::never, kNever},
    {"http://0xa9fea9fe/", May::never, kNever},
    {"http://2852039166/", May::never, kNever},
    {"http://0251.0376.43518/", May::never, kNever},
    {"http://224.0.0.1/", May::never, kNever},
    {"http://255.255.255.255/", May::never, kNever},
    {"http://4294967295/", May::never, kNever},
    {"http://[::]/", May::never, kNever},
    {"http://[::127.0.0.1]/", May::never, kNever},
    {"http://[fe80::1]/", May::never, kNever},
    {"http://[ff02::1]/", May::never, kNever},
    {"http://[::ffff:169.254.169.254]/", May::never, kNever},
    {"http://[64:ff9b::a9fe:a9fe]/", May::never, kNever},

    {"http://4294967296/", May::never, kNumber},
    {"http://256.0.0.1/", May::never, kNumber},
    {"http://1.2.3.256/", May::never, kNumber},
    {"http://1.2.3.4.5/", May::never, kNumber},
    {"http://1.16777216/", May::never, kNumber},
    {"http://08/", May::never, kNumber},
    {"http://0x/", May::never, kNumber},
    {"http://1..2/", May::never, kNumber},
    {"http://host.1/", May::never, kNumber},
    {"http://99999999999999999999999/", May::never, kNumber},
    {"http://[fe80::1%25eth0]/", May::never, "zone"},
    {"http://[2001:db8::1%251]/", May::never, "zone"},
    {"http://[127.0.0.1]/", May::never, "brackets without"},
    {"http://[]/", May::never, "brackets without"},
    {"http://[v1.x]/", May::never, "brackets without"},
    {"http://[::1/", May::never, "not closed"},
    {"http://[::1]x/", May::never, "between ]"},
    {"http://[::1]:0/", May::never, kPort},
};

void check(const UrlRow& row) {
  const auto publicly = webhookFault(row.url, WebhookRules{});
  const auto privately = webhookFault(row.url, WebhookRules{true, {"http", "https"}});
  EXPECT_EQ(!publicly, row.may == May::always) << row.url << ": " << publicly.value_or("taken");
  EXPECT_EQ(!privately, row.may != May::never) << row.url << ": " << privately.value_or("taken");
  EXPECT_THAT(publicly.value_or("webhook "), testing::StartsWith("webhook ")) << row.url;
  EXPECT_THAT(privately.value_or(row.says), HasSubstr(row.says)) << row.url;
  if (row.may == May::ifAllowed) {
    EXPECT_THAT(publicly.value_or(""), HasSubstr("net.allowPrivate = true")) << row.url;
  }
}

TEST(WebhookUrl, EveryShape) {
  for (const UrlRow& row : kShapes) check(row);
}

TEST(WebhookUrl, EveryAddressInEverySpelling) {
  for (const UrlRow& row : kAddresses) check(row);
}

TEST(WebhookUrl, MayHave8192Bytes) {
  std::string url = "http://h/";
  url.resize(kMaxWebhookUrl, 'x');
  EXPECT_EQ(webhookFault(url, {}), std::nullopt);
  EXPECT_THAT(webhookFault(url + "x", {}).value_or(""), HasSubstr("8192"));
  EXPECT_LT(webhookFault(std::string(1'000'000, '\0'), {}).value_or("").size(), 100U);
}

TEST(WebhookUrl, HoldsNoNul) {
  EXPECT_THAT(webhookFault(std::string("http://127.0.0.1\0.example/", 26), {}).value_or(""), HasSubstr("control"));
}

TEST(WebhookUrl, AHostHasTheLengthsOfDns) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  EXPECT_EQ(webhookFault("http://" + longest + "/", {}), std::nullopt);
  EXPECT_EQ(webhookFault("http://" + longest + "./", {}), std::nullopt);
  EXPECT_THAT(webhookFault("http://" + longest + "a/", {}).value_or(""), HasSubstr("253"));
  EXPECT_THAT(webhookFault("http://" + label + "a/", {}).value_or(""), HasSubstr("63"));
}

TEST(WebhookUrl, OtherSchemesAreTakenWhenATransportServesThem) {
  const WebhookRules rules{false, {"queue", "https"}};
  EXPECT_EQ(webhookFault("queue:/var/lib/hooks/%", rules), std::nullopt);
  EXPECT_EQ(webhookFault("QUEUE:", rules), std::nullopt);
  EXPECT_THAT(webhookFault("queue:/a b", rules).value_or(""), HasSubstr("blank"));
  EXPECT_THAT(webhookFault("queue:/a\n", rules).value_or(""), HasSubstr("control"));
  EXPECT_THAT(webhookFault("http://h/", rules).value_or(""), HasSubstr("supported scheme: https, queue"));
  EXPECT_THAT(webhookFault("https://10.0.0.1/", rules).value_or(""), HasSubstr("private"));
  EXPECT_THAT(webhookFault("https://h/", WebhookRules{false, {}}).value_or(""), HasSubstr("leave it out"));
}

// URLs that plugins/webhook_file would never write are refused at submission.
TEST(WebhookUrl, AFileIsANameInTheFolderOfTheTransport) {
  const WebhookRules rules{false, {"file"}};
  for (const std::string& url :
       {std::string("file:///a"), std::string("file:///a-B_9.jsonl"), "file:///" + std::string(128, 'a')}) {
    EXPECT_EQ(webhookFault(url, rules), std::nullopt) << url;
  }
  for (const std::string& url :
       {std::string("file:///../x"), std::string("file:///"), std::string("file:///.a"), std::string("file:///a/b"),
        std::string("file:///a%20b"), std::string("file://h/a"), std::string("file:/a"), std::string("file:a"),
        std::string("FILE:///a"), std::string("file:////a"), "file:///" + std::string(129, 'a')}) {
    EXPECT_THAT(webhookFault(url, rules).value_or(""), testing::StartsWith("webhook must be file:///NAME")) << url;
  }
}

TEST(WebhookUrl, ARefusalNamesTheFieldItIsAskedFor) {
  EXPECT_THAT(webhookFault("x", {}, "webhookV2").value_or(""), testing::StartsWith("webhookV2 must be"));
}

TEST(WebhookUrl, IsTakenApart) {
  const auto read = [](const char* url) { return std::get<WebUrl>(readWebUrl(url)); };
  EXPECT_EQ(read("HTTPS://u:p@Example.COM./x").scheme, "https");
  EXPECT_EQ(read("HTTPS://u:p@Example.COM./x").host, "example.com");
  EXPECT_EQ(read("https://h").port, 443);
  EXPECT_EQ(read("http://h:").port, 80);
  EXPECT_EQ(read("http://[::1]:8080/").port, 8080);
  EXPECT_EQ(read("http://0x7f.1/").host, "127.0.0.1");
  EXPECT_EQ(read("http://[2001:DB8:0::1]/").host, "2001:db8::1");
  EXPECT_EQ(read("http://localhost/").reach, net::AddressClass::open) << "a name is judged when it is connected to";
  EXPECT_EQ(read("http://127.1/").reach, net::AddressClass::privateRange);
}

}  // namespace
