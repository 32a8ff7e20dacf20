#include "transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>

#include "exchange.h"
#include "jobq/error.h"
#include "web_url.h"

namespace jobq::http_client {

namespace {

// Every plugin with an HTTP client initialises libcurl; the initialisation is thread-safe since 7.84.
CURLcode startLibcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  return started;
}

std::string reasonOfStart(CURLcode code) { return std::string("libcurl does not start: ") + curl_easy_strerror(code); }

std::optional<Fault> faultOf(const Request& request) {
  if (startLibcurl() != CURLE_OK) return Fault{FaultKind::other, reasonOfStart(startLibcurl())};
  const bool areHeadersGood = std::all_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return isHeaderName(header.first) && isHeaderValue(header.second);
  });
  if (!areHeadersGood) return Fault{FaultKind::badHeader, "a header of the call has characters that HTTP forbids"};
  return std::nullopt;
}

void prepareRedirect(Request& request, int status, bool toAnother) {
  const bool keepsBody = status == 307 || status == 308;
  if (!keepsBody) request.method = Method::get;
  const auto isLeftOut = [&](const Headers::value_type& header) {
    return (toAnother && isOneOf(header.first, {"Authorization", "Cookie"})) ||
           (!keepsBody && isOneOf(header.first, {"Content-Type", "Content-Encoding", "Content-Language"}));
  };
  request.headers.erase(std::remove_if(request.headers.begin(), request.headers.end(), isLeftOut),
                        request.headers.end());
}

// Returns the target of a redirect that may be followed, or the fault.
std::variant<WebUrl, Fault> nextUrl(const WebUrl& url, const std::string& location, int redirects, int maxRedirects) {
  if (redirects == maxRedirects) {
    return Fault{FaultKind::tooManyRedirects,
                 "there are more than " + std::to_string(maxRedirects) + " redirects: give the final address"};
  }
  std::optional<WebUrl> next = url.follow(location);
  if (!next) return Fault{FaultKind::badRedirect, "the redirect does not lead to an http or https URL with a host"};
  return std::move(*next);
}

std::string hostOfRedirect(const WebUrl& url, const std::string& location) {
  constexpr std::size_t kLongestName = 255;
  const std::optional<WebUrl> target = location.empty() ? std::nullopt : url.follow(location);
  const std::string host = target ? target->host() : std::string();
  return host.size() > kLongestName ? std::string() : host;
}

}  // namespace

Outcome transfer(Request request, const std::stop_token& stop, CancelCheck* check) {
  const auto end = std::chrono::steady_clock::now() + request.timeout;
  std::optional<WebUrl> url = WebUrl::read(request.url);
  if (!url) return {{}, {}, Fault{FaultKind::badUrl, std::string("the URL is not ") + kUrlExpected}};
  if (std::optional<Fault> fault = faultOf(request)) return {{}, {}, std::move(fault)};
  std::size_t headBytes = 0;
  for (int redirects = 0;; ++redirects) {
    IncomingAnswer answer(request.bodyBounds, request.maxRedirects > 0, headBytes);
    std::optional<Fault> fault = Exchange(request, *url, answer).run(end, stop, check);
    if (fault || !answer.leadsOn()) {
      return {std::move(answer.answer()), hostOfRedirect(*url, answer.location()), std::move(fault)};
    }
    auto next = nextUrl(*url, answer.location(), redirects, request.maxRedirects);
    if (auto* refusal = std::get_if<Fault>(&next)) return {{}, {}, std::move(*refusal)};
    prepareRedirect(request, answer.answer().status, std::get<WebUrl>(next).origin() != url->origin());
    headBytes = answer.headBytes();
    url = std::move(std::get<WebUrl>(next));
  }
}

void prepareTransfers() {
  if (startLibcurl() != CURLE_OK) throw Error(reasonOfStart(startLibcurl()));
}

std::string reasonOfStatus(const Outcome& outcome, std::string_view peer) {
  const std::string start = "the " + std::string(peer) + " answered ";
  if (!isRedirect(outcome.answer.status)) return start + std::to_string(outcome.answer.status);
  return start + "with a redirect" + (outcome.redirectHost.empty() ? "" : " to " + outcome.redirectHost) +
         ", which is not followed: give the final address";
}

}  // namespace jobq::http_client
