// The two readers of URLs, `core/base/curl_url.h` of the server and `plugins/http_client/web_url.h` of the plugins,
// over one table: an address check is useless if the connection leads to a host other than the checked host.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/base/curl_url.h"
#include "core/jobs/webhook_url.h"
#include "core/webhooks/curl_receiver_names.h"
#include "http_client/web_url.h"
#include "webhook_url_table.h"

namespace {

using namespace jobq;
using namespace jobq::test;

/// Returns one spelling for a host of either reader.
std::string plain(std::string host) {
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto read = readWebUrl("http://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + "/");
  return read ? read->host : host;
}

/// Checks that both readers find the same host and port if both accept the URL.
void expectAgreement(const std::string& url) {
  const auto ofCore = readUrlParts(url);
  const auto ofPlugins = http_client::WebUrl::read(url);
  if (!ofPlugins) return;
  ASSERT_TRUE(ofCore) << url;
  EXPECT_EQ(ofCore->host, ofPlugins->host()) << url;
  EXPECT_EQ(std::to_string(ofCore->port), ofPlugins->port()) << url;
}

/// Checks that a URL accepted at submission is called at the host read at submission.
void expectCalledAsSubmitted(const UrlRow& row) {
  if (row.may == May::never) return;
  const auto submitted = readWebUrl(row.url);
  const auto called = http_client::WebUrl::read(row.url);
  ASSERT_TRUE(submitted) << row.url;
  ASSERT_TRUE(called) << row.url;
  EXPECT_EQ(submitted->host, plain(called->host())) << row.url;
  EXPECT_EQ(std::to_string(submitted->port), called->port()) << row.url;
}

TEST(UrlReaders, AgreeOnEveryShape) {
  for (const UrlRow& row : kShapes) expectAgreement(row.url);
  for (const UrlRow& row : kShapes) expectCalledAsSubmitted(row);
}

TEST(UrlReaders, AgreeOnEveryAddressInEverySpelling) {
  for (const UrlRow& row : kAddresses) expectAgreement(row.url);
  for (const UrlRow& row : kAddresses) expectCalledAsSubmitted(row);
}

TEST(UrlReaders, TheNameOfAReceiverIsTheCalledHost) {
  const CurlReceiverNames names;
  const auto check = [&names](const UrlRow& row) {
    if (row.may == May::never) return;
    const auto url = http_client::WebUrl::read(row.url);
    ASSERT_TRUE(url) << row.url;
    EXPECT_EQ(names.nameOf(row.url), names.nameOf(url->origin() + "/")) << row.url;
  };
  for (const UrlRow& row : kShapes) check(row);
  for (const UrlRow& row : kAddresses) check(row);
}

TEST(UrlReaders, NameTheRefusedPartOfAUrl) {
  const auto sentenceOf = [](const std::string& url) { return readUrlParts(url).failure().message(); };
  EXPECT_EQ(sentenceOf("http://h:65536/"), kWrongPort);
  EXPECT_EQ(sentenceOf("http://[1.2.3.4]/"), kNoIpv6);
  EXPECT_EQ(sentenceOf("http://"), kNoUrl);
  EXPECT_EQ(sentenceOf(std::string("http://a\0b/", 11)), kNoUrl);
}

TEST(UrlReaders, ReadTheDestinationOfAUrl) {
  const auto partsOf = [](const std::string& url) { return *readUrlParts(url); };
  EXPECT_EQ(partsOf("HTTPS://u:p@H/x").scheme, "https");
  EXPECT_EQ(partsOf("https://h/x").port, 443);
  EXPECT_EQ(partsOf("http://u:p@h:0080/x").port, 80);
  EXPECT_EQ(partsOf("http://0x7f.1/").host, "127.0.0.1");
  EXPECT_EQ(partsOf("http://[0:0:0:0:0:0:0:1]/").host, "[::1]");
  EXPECT_TRUE(partsOf("http://h/").isUsualPort);
  EXPECT_TRUE(partsOf("https://h:0443/").isUsualPort);
  EXPECT_FALSE(partsOf("https://h:80/").isUsualPort);
  EXPECT_FALSE(partsOf("http://h:0/").isUsualPort);
  EXPECT_EQ(partsOf("other://h/").port, 0);
}

}  // namespace
