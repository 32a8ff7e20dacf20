// A webhook's URL against the readers of possible transports: libcurl, Poco, and the resolver behind both. An accepted
// URL leads to the same host for all readers, and an address as host is a permitted address.
#include <Poco/Exception.h>
#include <Poco/URI.h>
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "check.h"
#include "core/jobs/webhook_url.h"

namespace {

using namespace jobq;

struct CleanUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using CurlUrl = std::unique_ptr<CURLU, CleanUrl>;

struct Place {
  std::string scheme;
  std::string host;
  std::string port;
};

std::string part(const CurlUrl& url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  const std::string copy(text);
  curl_free(text);
  return copy;
}

/// Uses the flags with which a transfer sets its URL.
std::optional<Place> askCurl(const std::string& text) {
  const CurlUrl url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME) !=
      CURLUE_OK) {
    return std::nullopt;
  }
  return Place{part(url, CURLUPART_SCHEME), part(url, CURLUPART_HOST), part(url, CURLUPART_PORT)};
}

std::optional<Place> askPoco(const std::string& text) {
  try {
    const Poco::URI url(text);
    return Place{url.getScheme(), url.getHost(), std::to_string(url.getPort())};
  } catch (const Poco::Exception&) {
    return std::nullopt;
  }
}

template <std::size_t kBytes>
net::AddressClass classOf(const void* bytes) {
  std::array<std::uint8_t, kBytes> address{};
  std::memcpy(address.data(), bytes, kBytes);
  return net::classifyAddress(address);
}

/// Returns the class of a host that the resolver takes for an address, with or without brackets.
std::optional<net::AddressClass> askResolver(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> keep(found, freeaddrinfo);
  if (found->ai_family == AF_INET) {
    return classOf<4>(&reinterpret_cast<const sockaddr_in*>(found->ai_addr)->sin_addr);
  }
  return classOf<16>(&reinterpret_cast<const sockaddr_in6*>(found->ai_addr)->sin6_addr);
}

/// Returns one spelling for each host: an address by its bytes, a name in lower case without its last dot.
std::string plainly(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  for (char& c : host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (host.ends_with('.')) host.pop_back();
  std::array<char, 16> bytes{};
  if (inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return std::string(bytes.data(), 16);
  if (inet_aton(host.c_str(), reinterpret_cast<in_addr*>(bytes.data())) == 1) return std::string(bytes.data(), 4);
  return host;
}

void compare(const WebUrl& own, const Place& other, bool allowPrivate) {
  BELIEVE(own.scheme == other.scheme && std::to_string(own.port) == other.port);
  BELIEVE(plainly(own.host) == plainly(other.host));
  const auto addressClass = askResolver(other.host);
  if (!addressClass) return;
  BELIEVE(*addressClass == own.addressClass && net::isAllowed(*addressClass, allowPrivate));
}

void checkTaken(const std::string& url, bool allowPrivate) {
  const auto own = readWebUrl(url);
  BELIEVE(own && url.size() <= kMaxWebhookUrl);
  BELIEVE(net::isAllowed(askResolver(own->host).value_or(net::AddressClass::open), allowPrivate));
  const auto curl = askCurl(url);
  BELIEVE(curl);
  compare(*own, *curl, allowPrivate);
  const auto poco = askPoco(url);
  BELIEVE(poco);
  compare(*own, *poco, allowPrivate);
}

void checkSentence(const std::string& sentence) {
  BELIEVE(sentence.starts_with("webhook ") && sentence.size() < 200);
  for (const char c : sentence) BELIEVE(c >= 0x20 && c < 0x7f);
}

/// Checks that an ordinary host with any printable path is accepted, because refusing every URL would satisfy the other
/// checks.
void checkOrdinary(const std::string& text) {
  std::string url = "https://example.com:8443/";
  for (const char c : text) {
    if (c > 0x20 && c < 0x7f && c != '\\' && c != '%') url.push_back(c);
  }
  if (url.size() <= kMaxWebhookUrl) BELIEVE(checkWebhook(url, {}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string url(reinterpret_cast<const char*>(data), size);
  const auto publicly = checkWebhook(url, WebhookRules{});
  const auto privately = checkWebhook(url, WebhookRules{true, {"http", "https"}});
  for (const auto& good : {publicly, privately}) {
    if (!good) checkSentence(good.failure().message());
  }
  BELIEVE(!publicly || privately);
  if (publicly) checkTaken(url, false);
  if (privately) checkTaken(url, true);
  checkOrdinary(url);
  return 0;
}
