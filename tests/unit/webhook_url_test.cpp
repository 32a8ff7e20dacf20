// Tests of the accepted webhook URLs (core/http/API.md, "Webhook URLs"), and of addresses recognised in every spelling.
#include "core/jobs/webhook_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "webhook_url_table.h"

namespace {

using namespace jobq;
using namespace jobq::test;
using testing::HasSubstr;

std::optional<std::string> refusalOf(std::string_view url, const WebhookRules& rules,
                                     std::string_view field = "webhook") {
  const auto good = checkWebhook(url, rules, field);
  return good ? std::nullopt : std::optional(good.failure().message());
}

void check(const UrlRow& row) {
  const auto publicly = refusalOf(row.url, WebhookRules{});
  const auto privately = refusalOf(row.url, WebhookRules{true, {"http", "https"}});
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
  EXPECT_EQ(refusalOf(url, {}), std::nullopt);
  EXPECT_THAT(refusalOf(url + "x", {}).value_or(""), HasSubstr("8192"));
  EXPECT_LT(refusalOf(std::string(1'000'000, '\0'), {}).value_or("").size(), 100U);
}

TEST(WebhookUrl, HoldsNoNul) {
  EXPECT_THAT(refusalOf(std::string("http://127.0.0.1\0.example/", 26), {}).value_or(""), HasSubstr("control"));
}

TEST(WebhookUrl, AHostHasTheLengthsOfDns) {
  const std::string label(63, 'a');
  const std::string longest = label + "." + label + "." + label + "." + std::string(61, 'a');
  EXPECT_EQ(refusalOf("http://" + longest + "/", {}), std::nullopt);
  EXPECT_EQ(refusalOf("http://" + longest + "./", {}), std::nullopt);
  EXPECT_THAT(refusalOf("http://" + longest + "a/", {}).value_or(""), HasSubstr("253"));
  EXPECT_THAT(refusalOf("http://" + label + "a/", {}).value_or(""), HasSubstr("63"));
}

TEST(WebhookUrl, OtherSchemesAreTakenWithATransport) {
  const WebhookRules rules{false, {"queue", "https"}};
  EXPECT_EQ(refusalOf("queue:/var/lib/hooks/%", rules), std::nullopt);
  EXPECT_EQ(refusalOf("QUEUE:", rules), std::nullopt);
  EXPECT_THAT(refusalOf("queue:/a b", rules).value_or(""), HasSubstr("blank"));
  EXPECT_THAT(refusalOf("queue:/a\n", rules).value_or(""), HasSubstr("control"));
  EXPECT_THAT(refusalOf("http://h/", rules).value_or(""), HasSubstr("supported scheme: https, queue"));
  EXPECT_THAT(refusalOf("https://10.0.0.1/", rules).value_or(""), HasSubstr("private"));
  EXPECT_THAT(refusalOf("https://h/", WebhookRules{false, {}}).value_or(""), HasSubstr("leave it out"));
}

// URLs that plugins/webhook_file would never write are refused at submission.
TEST(WebhookUrl, AFileIsANameInTheFolderOfTheTransport) {
  const WebhookRules rules{false, {"file"}};
  for (const std::string& url :
       {std::string("file:///a"), std::string("file:///a-B_9.jsonl"), "file:///" + std::string(128, 'a')}) {
    EXPECT_EQ(refusalOf(url, rules), std::nullopt) << url;
  }
  for (const std::string& url :
       {std::string("file:///../x"), std::string("file:///"), std::string("file:///.a"), std::string("file:///a/b"),
        std::string("file:///a%20b"), std::string("file://h/a"), std::string("file:/a"), std::string("file:a"),
        std::string("FILE:///a"), std::string("file:////a"), "file:///" + std::string(129, 'a')}) {
    EXPECT_THAT(refusalOf(url, rules).value_or(""), testing::StartsWith("webhook must be file:///NAME")) << url;
  }
}

TEST(WebhookUrl, ARefusalNamesTheGivenField) {
  EXPECT_THAT(refusalOf("x", {}, "webhookV2").value_or(""), testing::StartsWith("webhookV2 must be"));
}

TEST(WebhookUrl, IsTakenApart) {
  const auto read = [](const char* url) { return *readWebUrl(url); };
  EXPECT_EQ(read("HTTPS://u:p@Example.COM./x").scheme, "https");
  EXPECT_EQ(read("HTTPS://u:p@Example.COM./x").host, "example.com");
  EXPECT_EQ(read("https://h").port, 443);
  EXPECT_EQ(read("http://h:").port, 80);
  EXPECT_EQ(read("http://[::1]:8080/").port, 8080);
  EXPECT_EQ(read("http://0x7f.1/").host, "127.0.0.1");
  EXPECT_EQ(read("http://[2001:DB8:0::1]/").host, "2001:db8::1");
  EXPECT_EQ(read("http://localhost/").addressClass, net::AddressClass::open)
      << "a name is checked when the client connects";
  EXPECT_EQ(read("http://127.1/").addressClass, net::AddressClass::privateRange);
}

}  // namespace
