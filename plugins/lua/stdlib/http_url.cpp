#include "stdlib/http_url.h"

#include <algorithm>
#include <new>

namespace jobq::lua {
namespace {

std::string partOf(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

bool isPlain(const std::string& text) {
  return text.size() <= HttpUrl::kLongest && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

// libcurl is lenient about slashes (http:/host, http:///host, http://a\@host), where other readers see another host.
bool hasAuthority(const std::string& text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos) return false;
  const std::string authority = text.substr(colon + 3, text.find_first_of("/?#", colon + 3) - colon - 3);
  return !authority.empty() && authority.find('\\') == std::string::npos;
}

}  // namespace

std::optional<HttpUrl> HttpUrl::read(const std::string& text) {
  if (!isPlain(text) || !hasAuthority(text)) return std::nullopt;
  Handle url(curl_url());
  if (!url) throw std::bad_alloc();
  // The path stays unchanged: a server may distinguish /a/../b from /b.
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK) return std::nullopt;
  const std::string scheme = partOf(url.get(), CURLUPART_SCHEME);
  if ((scheme != "http" && scheme != "https") || partOf(url.get(), CURLUPART_HOST).empty()) return std::nullopt;
  return HttpUrl(std::move(url));
}

std::optional<HttpUrl> HttpUrl::follow(const std::string& location) const {
  if (!isPlain(location)) return std::nullopt;
  const Handle url(curl_url_dup(url_.get()));
  if (!url) throw std::bad_alloc();
  // Servers write spaces and bytes beyond ASCII into Location, and browsers accept both.
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) != CURLUE_OK) return std::nullopt;
  return read(partOf(url.get(), CURLUPART_URL));
}

std::string HttpUrl::origin() const {
  std::string text = partOf(url_.get(), CURLUPART_SCHEME) + "://" + partOf(url_.get(), CURLUPART_HOST) + ":" +
                     partOf(url_.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

}  // namespace jobq::lua
