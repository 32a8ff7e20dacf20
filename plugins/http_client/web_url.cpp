#include "web_url.h"

#include <algorithm>
#include <new>

namespace jobq::http_client {

namespace {

std::string partOf(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

bool isPlain(const std::string& text) {
  return text.size() <= WebUrl::kLongest && std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

// libcurl accepts other numbers of slashes and backslashes (http:/host, http:///host, http://a\@host); other readers
// see another host there.
std::string authorityOf(const std::string& text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos) return {};
  std::string authority = text.substr(colon + 3, text.find_first_of("/?#", colon + 3) - colon - 3);
  return authority.find('\\') == std::string::npos ? authority : std::string();
}

}  // namespace

std::optional<WebUrl> WebUrl::read(const std::string& text) {
  const std::string authority = authorityOf(text);
  if (!isPlain(text) || authority.empty()) return std::nullopt;
  const bool isBare = text.find_first_of("?#") == std::string::npos && authority.find('@') == std::string::npos;
  Handle url(curl_url());
  if (!url) throw std::bad_alloc();
  // The path stays unchanged: a server may distinguish /a/../b from /b, and a signature covers the path as it is sent.
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_PATH_AS_IS) != CURLUE_OK) return std::nullopt;
  const std::string scheme = partOf(url.get(), CURLUPART_SCHEME);
  if ((scheme != "http" && scheme != "https") || partOf(url.get(), CURLUPART_HOST).empty()) return std::nullopt;
  return WebUrl(std::move(url), isBare);
}

std::optional<WebUrl> WebUrl::follow(const std::string& location) const {
  if (!isPlain(location)) return std::nullopt;
  const Handle url(curl_url_dup(url_.get()));
  if (!url) throw std::bad_alloc();
  // Servers write spaces and bytes beyond ASCII into Location, and browsers accept both.
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) != CURLUE_OK) return std::nullopt;
  auto next = read(partOf(url.get(), CURLUPART_URL));
  if (next && next->origin() == origin()) next->keepLoginOf(*this);
  return next;
}

// A whole URL in Location rarely repeats the user and the password, which belong to the origin.
void WebUrl::keepLoginOf(const WebUrl& before) {
  if (!partOf(url_.get(), CURLUPART_USER).empty()) return;
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD}) {
    const std::string text = partOf(before.url_.get(), part);
    if (!text.empty() && curl_url_set(url_.get(), part, text.c_str(), 0) != CURLUE_OK) throw std::bad_alloc();
  }
}

std::string WebUrl::host() const { return partOf(url_.get(), CURLUPART_HOST); }

std::string WebUrl::port() const { return partOf(url_.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT); }

std::string WebUrl::origin() const {
  std::string text = partOf(url_.get(), CURLUPART_SCHEME) + "://" + host() + ":" + port();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

std::string WebUrl::shown() const {
  const std::string port = partOf(url_.get(), CURLUPART_PORT);
  return partOf(url_.get(), CURLUPART_SCHEME) + "://" + host() + (port.empty() ? "" : ":" + port) +
         partOf(url_.get(), CURLUPART_PATH);
}

}  // namespace jobq::http_client
