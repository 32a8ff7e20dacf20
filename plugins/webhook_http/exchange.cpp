#include "exchange.h"

#include <curl/curl.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "address_check.h"
#include "answer.h"
#include "reasons.h"
#include "web_url.h"

namespace jobq::webhook_http {

namespace {

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

enum class Ending { finished, stopped, late };

bool isToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kMarks.find(c) != kMarks.npos;
  });
}

// libcurl sends a line unchanged. A line break inside the line would begin another header.
bool isFieldValue(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; });
}

class Exchange {
 public:
  Exchange(const WebhookCall& call, const Terms& terms, const std::stop_token& stop, WebUrl url)
      : call_(call),
        terms_(terms),
        stop_(stop),
        url_(std::move(url)),
        multi_(curl_multi_init()),
        easy_(curl_easy_init()) {
    if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
  }
  ~Exchange() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  DeliveryResult run() {
    setUpConnection();
    setUpTrust();
    setUpRequest();
    setUpAnswer();
    const Ending ending = perform();
    const int status = answer_.status();
    if (status / 100 != 2) return DeliveryFailed{reasonOf(ending), status, std::move(answer_.reply())};
    if (ending != Ending::late) return Delivered{status, std::move(answer_.reply())};
    return DeliveryFailed{
        "the receiver answered " + std::to_string(status) + ", but not completely within " + inWords(call_.timeout),
        status, std::move(answer_.reply())};
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw std::bad_alloc();
  }

  void setUpConnection() {
    set(CURLOPT_CURLU, url_.get());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    // A single POST needs no other protocol, and every receiver speaks 1.1.
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROXY, "");  // empty, not unset: libcurl then ignores the environment's proxy
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_FORBID_REUSE, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(call_.timeout.count(), 1)));
    // A hanging resolver is left to its thread, which cleans up later; the end of the call would wait for the resolver
    // otherwise.
    set(CURLOPT_QUICK_EXIT, 1L);
    set(CURLOPT_OPENSOCKETFUNCTION, openSocket);
    set(CURLOPT_OPENSOCKETDATA, this);
  }

  // Debian has the system's authorities as a single file and as a folder. Reading the file takes 25 ms of a handshake,
  // the search in the folder no measurable time.
  void setUpTrust() {
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    const char* folder = nullptr;
    curl_easy_getinfo(easy_.get(), CURLINFO_CAPATH, &folder);
    if (folder != nullptr) set(CURLOPT_CAINFO, static_cast<const char*>(nullptr));
    if (terms_.authorities.empty()) return;
    curl_blob blob{};
    blob.data = const_cast<char*>(terms_.authorities.data());
    blob.len = terms_.authorities.size();
    blob.flags = CURL_BLOB_NOCOPY;
    set(CURLOPT_CAINFO_BLOB, &blob);
  }

  void setUpRequest() {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
    set(CURLOPT_POSTFIELDS, call_.body.data());
    set(CURLOPT_USERAGENT, "jobq-webhook/1");
    if (!gives("Content-Type")) addHeader("Content-Type: application/json");
    addHeader("Connection: close");
    addHeader("Expect:");  // removes the header: many receivers delay a call with the header by a second
    for (const auto& [name, value] : call_.headers) addHeader(name + (value.empty() ? ";" : ": " + value));
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  void setUpAnswer() {
    set(CURLOPT_ERRORBUFFER, detail_.data());
    set(CURLOPT_HEADERFUNCTION, takeHeadLine);
    set(CURLOPT_HEADERDATA, this);
    set(CURLOPT_WRITEFUNCTION, takeBody);
    set(CURLOPT_WRITEDATA, this);
  }

  bool gives(const char* name) const {
    return std::any_of(call_.headers.begin(), call_.headers.end(),
                       [name](const auto& header) { return strcasecmp(header.first.c_str(), name) == 0; });
  }

  void addHeader(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)headers_.release();
    headers_.reset(longer);
  }

  // Uses the multi interface, because only its wait can be ended from another thread.
  Ending perform() {
    curl_multi_add_handle(multi_.get(), easy_.get());
    const std::stop_callback wake(stop_, [this] { curl_multi_wakeup(multi_.get()); });
    for (;;) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw std::bad_alloc();
      if (running == 0) return finish();
      if (stop_.stop_requested()) return Ending::stopped;
      // libcurl 7.88 gives up an address when its share of the time is over, and tries the next address at the next
      // call.
      constexpr int kLongestWaitMs = 100;
      curl_multi_poll(multi_.get(), nullptr, 0, kLongestWaitMs, nullptr);
    }
  }

  Ending finish() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    code_ = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
    return code_ == CURLE_OPERATION_TIMEDOUT ? Ending::late : Ending::finished;
  }

  std::string reasonOf(Ending ending) const {
    if (answer_.status() != 0) return reasonOfStatus(easy_.get(), answer_.status());
    if (ending == Ending::stopped) return "the delivery was stopped before an answer came";
    if (ending == Ending::late) return reasonOfDelay(easy_.get(), call_.timeout);
    if (answer_.headTooLarge())
      return "the answer's head is larger than " + std::to_string(Answer::kMaxHead) + " bytes";
    // Among several addresses, the permitted ones decide.
    if (code_ == CURLE_COULDNT_CONNECT && !connecting_ && !refusal_.empty()) return refusal_;
    return reasonOfFault(easy_.get(), code_, detail_.data());
  }

  // The three callbacks are called from C code, where exceptions must not pass.
  static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
    try {
      return static_cast<Exchange*>(self)->openPermitted(*address);
    } catch (...) {
      return CURL_SOCKET_BAD;
    }
  }
  curl_socket_t openPermitted(const curl_sockaddr& address) {
    sockaddr_storage copy{};
    std::memcpy(&copy, static_cast<const void*>(&address.addr), std::min<std::size_t>(address.addrlen, sizeof copy));
    std::string refusal = refusalOf(copy, terms_.allowPrivate);
    if (!refusal.empty()) {
      if (refusal_.empty()) refusal_ = std::move(refusal);
      return CURL_SOCKET_BAD;
    }
    const int opened = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
    if (opened < 0) refusal_ = "no socket can be opened: " + reasonOfErrno(errno);
    connecting_ = connecting_ || opened >= 0;
    return opened;
  }

  static std::size_t takeHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
    auto& exchange = *static_cast<Exchange*>(self);
    long status = 0;
    curl_easy_getinfo(exchange.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return exchange.answer_.takeHeadLine({bytes, count}, static_cast<int>(status)) ? count : 0;
  }

  static std::size_t takeBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
    try {
      return static_cast<Exchange*>(self)->answer_.takeBody({bytes, count}) ? count : 0;
    } catch (...) {
      return 0;
    }
  }

  const WebhookCall& call_;
  const Terms& terms_;
  const std::stop_token& stop_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  Answer answer_;
  std::string refusal_;      // reason why an address was not connected to
  bool connecting_ = false;  // a socket for a permitted address was opened
  CURLcode code_ = CURLE_OK;
  const WebUrl url_;
  std::unique_ptr<curl_slist, FreeList> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, FreeEasy> easy_;
};

}  // namespace

DeliveryResult exchange(const WebhookCall& call, const Terms& terms, std::stop_token stop) {
  WebUrl url = readWebUrl(call.url);
  if (url == nullptr) return DeliveryFailed{"the URL is not an absolute http or https URL with a host", 0, {}};
  for (const auto& [name, value] : call.headers) {
    if (!isToken(name) || !isFieldValue(value)) {
      return DeliveryFailed{"a header of the call has characters that HTTP forbids", 0, {}};
    }
  }
  if (stop.stop_requested()) return DeliveryFailed{"the delivery was stopped before an answer came", 0, {}};
  return Exchange(call, terms, stop, std::move(url)).run();
}

}  // namespace jobq::webhook_http
