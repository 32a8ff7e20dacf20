#include "transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <variant>

#include "exchange.h"
#include "jobq/error.h"
#include "web_url.h"

namespace jobq::http_client {

namespace {

struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

/// Performs an exchange with libcurl on the calling thread, once.
class LoneExchange {
 public:
  explicit LoneExchange(Exchange& exchange) : exchange_(exchange), multi_(curl_multi_init()) {
    if (multi_ == nullptr) throw std::bad_alloc();
    if (curl_multi_add_handle(multi_.get(), exchange_.handle()) != CURLM_OK) throw std::bad_alloc();
  }
  ~LoneExchange() { curl_multi_remove_handle(multi_.get(), exchange_.handle()); }
  LoneExchange(const LoneExchange&) = delete;
  LoneExchange& operator=(const LoneExchange&) = delete;

  std::optional<Fault> run(const std::stop_token& stop, CancelCheck* check) {
    if (!perform(stop, check)) return stoppedFault();
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return exchange_.faultOf(message == nullptr ? CURLE_FAILED_INIT : message->data.result);
  }

 private:
  // Uses the multi interface, because only its wait can be ended from another thread. Returns false if the transfer was
  // stopped.
  bool perform(const std::stop_token& stop, CancelCheck* check) {
    // libcurl 7.88 leaves an address whose share of the time is over only within a call of curl_multi_perform(), so the
    // wait between two calls is short.
    constexpr int kLongestWaitMs = 100;
    constexpr int kCheckMs = 50;
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    for (;;) {
      const bool isStopped = stop.stop_requested();  // bytes that came before the stop are read by the call below
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw std::bad_alloc();
      if (running == 0) return true;
      if (isStopped || (check != nullptr && check->isOver())) return false;
      curl_multi_poll(multi_.get(), nullptr, 0, check == nullptr ? kLongestWaitMs : kCheckMs, nullptr);
    }
  }

  Exchange& exchange_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
};

std::optional<Fault> exchangeAlone(const Request& request, const WebUrl& url, IncomingAnswer& answer,
                                   std::chrono::steady_clock::time_point end, const std::stop_token& stop,
                                   CancelCheck* check) {
  Exchange exchange(request, url, answer, Connections::single);
  exchange.setUp(end);
  if (stop.stop_requested()) return stoppedFault();
  return LoneExchange(exchange).run(stop, check);
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

/// Decides whether an exchange is made again because this machine lacked something.
class Repetition {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  Repetition(Moment until, const std::stop_token& stop, CancelCheck* check)
      : until_(until), stop_(stop), check_(check) {}

  /// Returns whether the exchange may be made again after pause().
  bool allows(const Fault& fault) const { return fault.kind == FaultKind::machine && nextTry() < until_; }

  /// Returns false if the transfer was stopped meanwhile.
  bool pause() const {
    constexpr Millis kCheck{50};
    std::mutex mutex;
    std::condition_variable_any neverNotified;
    for (const Moment next = nextTry(); std::chrono::steady_clock::now() < next;) {
      std::unique_lock lock(mutex);
      neverNotified.wait_for(lock, stop_, kCheck, [] { return false; });
      if (stop_.stop_requested() || (check_ != nullptr && check_->isOver())) return false;
    }
    return true;
  }

 private:
  static Moment nextTry() { return std::chrono::steady_clock::now() + Millis(1'000); }

  const Moment until_;
  const std::stop_token& stop_;
  CancelCheck* const check_;
};

// A server has executed the exchanges of the redirects before, so only the failed exchange is made again.
Outcome transferWithin(Request request, const Repetition& repetition, const std::stop_token& stop, CancelCheck* check) {
  auto end = std::chrono::steady_clock::now() + request.timeout;
  auto checked = urlOf(request);
  if (auto* fault = std::get_if<Fault>(&checked)) return {{}, {}, std::move(*fault)};
  WebUrl url = std::move(std::get<WebUrl>(checked));
  std::size_t headBytes = 0;
  for (int redirects = 0;;) {
    IncomingAnswer answer(request.bodyBounds, request.maxRedirects > 0, headBytes);
    std::optional<Fault> fault = exchangeAlone(request, url, answer, end, stop, check);
    if (fault && repetition.allows(*fault)) {
      if (!repetition.pause()) return {{}, {}, stoppedFault()};
      end = std::chrono::steady_clock::now() + request.timeout;
      continue;
    }
    if (fault || !answer.leadsOn()) return outcomeOf(url, answer, std::move(fault));
    auto next = nextUrl(url, answer.location(), redirects++, request.maxRedirects);
    if (auto* refusal = std::get_if<Fault>(&next)) return {{}, {}, std::move(*refusal)};
    prepareRedirect(request, answer.answer().status, std::get<WebUrl>(next).origin() != url.origin());
    headBytes = answer.headBytes();
    url = std::move(std::get<WebUrl>(next));
  }
}

}  // namespace

Outcome transfer(Request request, const std::stop_token& stop, CancelCheck* check) {
  return transferWithin(std::move(request), Repetition({}, stop, check), stop, check);
}

Outcome transferPatiently(Request request, const std::stop_token& stop, CancelCheck* check) {
  const Repetition repetition(std::chrono::steady_clock::now() + request.timeout, stop, check);
  return transferWithin(std::move(request), repetition, stop, check);
}

void prepareTransfers() {
  if (const std::optional<Fault> fault = startLibcurl()) throw Error(fault->reason);
}

std::string reasonOfStatus(const Outcome& outcome, std::string_view peer) {
  const std::string start = "the " + std::string(peer) + " answered ";
  if (!isRedirect(outcome.answer.status)) return start + std::to_string(outcome.answer.status);
  return start + "with a redirect" + (outcome.redirectHost.empty() ? "" : " to " + outcome.redirectHost) +
         ", which is not followed: give the final address";
}

}  // namespace jobq::http_client
