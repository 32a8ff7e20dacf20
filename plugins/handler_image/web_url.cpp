#include "web_url.h"

#include <curl/curl.h>

#include <memory>

namespace jobq::image {

namespace {

struct CleanUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Handle = std::unique_ptr<CURLU, CleanUrl>;

std::string part(const Handle& url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, 0) != CURLUE_OK) return {};
  const std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::optional<WebUrl> parseWebUrl(const std::string& text) {
  const Handle url(curl_url());
  if (url == nullptr || text.find('\0') != std::string::npos) return std::nullopt;
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) return std::nullopt;
  const std::string scheme = part(url, CURLUPART_SCHEME);
  const std::string host = part(url, CURLUPART_HOST);
  if ((scheme != "http" && scheme != "https") || host.empty()) return std::nullopt;
  const std::string port = part(url, CURLUPART_PORT);
  WebUrl result;
  result.text = text;
  result.shown = scheme + "://" + host + (port.empty() ? "" : ":" + port) + part(url, CURLUPART_PATH);
  result.plain = true;
  for (const CURLUPart secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    result.plain = result.plain && part(url, secret).empty();
  }
  return result;
}

}  // namespace jobq::image
