#include "core/base/curl_url.h"

#include <curl/curl.h>

#include <charconv>
#include <memory>
#include <new>

namespace jobq {
namespace {

using UrlHandle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string partOf(const UrlHandle& url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  const CURLUcode code = curl_url_get(url.get(), part, &text, flags);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

const char* sentenceOf(CURLUcode code) {
  switch (code) {
    case CURLUE_BAD_PORT_NUMBER: return kWrongPort;
    case CURLUE_BAD_IPV6: return kNoIpv6;
    default: return kNoUrl;
  }
}

}  // namespace

Result<UrlParts> readUrlParts(const std::string& url) {
  const UrlHandle handle(curl_url(), curl_url_cleanup);
  if (handle == nullptr) throw std::bad_alloc();
  if (url.find('\0') != std::string::npos) return invalid(kNoUrl);
  const CURLUcode code =
      curl_url_set(handle.get(), CURLUPART_URL, url.c_str(), CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLUE_OK) return invalid(sentenceOf(code));
  UrlParts parts{partOf(handle, CURLUPART_SCHEME), partOf(handle, CURLUPART_HOST)};
  const std::string port = partOf(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::from_chars(port.data(), port.data() + port.size(), parts.port);
  parts.isUsualPort = partOf(handle, CURLUPART_PORT, CURLU_NO_DEFAULT_PORT).empty();
  return parts;
}

std::string resolverHost(std::string host) {
  if (host.ends_with('.')) host.pop_back();
  const auto parts = readUrlParts("http://" + host + "/");
  return parts ? parts->host : host;
}

std::string lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace jobq
