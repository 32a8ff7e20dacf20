#include "stdlib/http_call.h"

#include <curl/curl.h>
#include <strings.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>

#include "stdlib/http_exchange.h"
#include "stdlib/http_url.h"

namespace jobq::lua {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [name](std::string_view other) {
    return name.size() == other.size() && strncasecmp(name.data(), other.data(), name.size()) == 0;
  });
}

bool isToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kMarks.find(c) != kMarks.npos;
  });
}

void redirect(HttpRequest& request, int status, bool toAnother) {
  const bool keepsBody = status == 307 || status == 308;
  if (!keepsBody) request.body.reset();
  const auto isLeftOut = [&](const Headers::value_type& header) {
    return (toAnother && isOneOf(header.first, {"Authorization", "Cookie"})) ||
           (!keepsBody && isOneOf(header.first, {"Content-Type", "Content-Encoding", "Content-Language"}));
  };
  request.headers.erase(std::remove_if(request.headers.begin(), request.headers.end(), isLeftOut),
                        request.headers.end());
}

}  // namespace

std::string headerFault(std::string_view name, std::string_view value) {
  if (!isToken(name)) return "a header's name has characters that HTTP forbids";
  if (isOneOf(name, {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Keep-Alive", "TE",
                     "Trailer", "Upgrade", "Proxy-Connection"})) {
    return "the header " + std::string(name) + " cannot be set by a script";
  }
  const bool hasControl = std::any_of(value.begin(), value.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
  return hasControl ? "the value of the header " + std::string(name) + " has a line break or control character" : "";
}

HttpOutcome callHttp(HttpRequest request, const std::function<bool()>& isOver) {
  // Other plugins initialise libcurl too; since 7.84 the initialisation is thread-safe.
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) return HttpFault{std::string("libcurl does not start: ") + curl_easy_strerror(started)};
  std::optional<HttpUrl> url = HttpUrl::read(request.url);
  if (!url) return HttpFault{"the URL is not an absolute http or https URL with a host"};
  const auto end = std::chrono::steady_clock::now() + request.timeout;
  std::size_t headBytes = 0;
  for (int redirects = 0;; ++redirects) {
    IncomingAnswer answer(request.maxBody, headBytes);
    const std::optional<HttpOutcome> failure = HttpExchange(request, *url, answer).run(end, isOver);
    if (failure) return *failure;
    if (answer.location().empty()) return std::move(answer.answer());
    if (redirects == kMostRedirects) {
      return HttpFault{"there are more than " + std::to_string(kMostRedirects) + " redirects: give the final address"};
    }
    std::optional<HttpUrl> next = url->follow(answer.location());
    if (!next) return HttpFault{"the redirect does not lead to an http or https URL with a host"};
    redirect(request, answer.answer().status, next->origin() != url->origin());
    headBytes = answer.headBytes();
    url = std::move(next);
  }
}

}  // namespace jobq::lua
