#include "web_url.h"

#include <cstddef>
#include <new>

namespace jobq::webhook_http {

namespace {

std::string partOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

// libcurl accepts other numbers of slashes and backslashes (http:/host, http:///host, http://a\@host); other readers
// see another host there.
bool hasAuthority(const std::string& text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos) return false;
  const std::string authority = text.substr(colon + 3, text.find_first_of("/?#", colon + 3) - colon - 3);
  return !authority.empty() && authority.find('\\') == std::string::npos;
}

}  // namespace

WebUrl readWebUrl(const std::string& text) {
  if (text.find('\0') != std::string::npos || !hasAuthority(text)) return nullptr;
  WebUrl url(curl_url());
  if (url == nullptr) throw std::bad_alloc();
  // The path stays unchanged: a receiver may distinguish /a/../b from /b.
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK) return nullptr;
  const std::string scheme = partOf(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return nullptr;
  if (partOf(url.get(), CURLUPART_HOST).empty()) return nullptr;
  return url;
}

std::string hostOf(const std::string& text) {
  constexpr std::size_t kLongestName = 255;
  const WebUrl url = readWebUrl(text);
  if (url == nullptr) return {};
  const std::string host = partOf(url.get(), CURLUPART_HOST);
  return host.size() > kLongestName ? std::string() : host;
}

}  // namespace jobq::webhook_http
