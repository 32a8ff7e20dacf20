#include "docker_socket.h"

#include <curl/curl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace jobq::docker {
namespace {

struct FreeCurl {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

bool isLibcurlStarted() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  return started == CURLE_OK;
}

/// One call, made once, on one thread.
class Transfer {
 public:
  Transfer(const std::string& path, const SocketCall& call)
      : call_(call), multi_(curl_multi_init()), easy_(curl_easy_init()) {
    if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
    set(CURLOPT_UNIX_SOCKET_PATH, path.c_str());
    set(CURLOPT_URL, ("http://docker" + call.path).c_str());
    set(CURLOPT_PROTOCOLS_STR, "http");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_PROXY, "");  // not unset: libcurl would use the proxy of the environment
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_FORBID_REUSE, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    setLimits();
    setRequest();
    set(CURLOPT_WRITEFUNCTION, addBody);
    set(CURLOPT_WRITEDATA, this);
  }
  ~Transfer() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  std::variant<SocketAnswer, NoAnswer> run(const std::stop_token& stop) {
    if (stop.stop_requested() || !perform(stop)) return NoAnswer{"the call was stopped", isConnected()};
    if (outOfMemory_) throw std::bad_alloc();
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    const CURLcode code = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
    answer_.status = status();
    if (code == CURLE_OK && answer_.status != 0) return std::move(answer_);
    return NoAnswer{reasonOf(code), isConnected()};
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw std::bad_alloc();
  }

  void setLimits() {
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(call_.limit.count(), 1)));
    if (call_.silence.count() == 0) return;
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::max<std::int64_t>(call_.silence.count() / 1000, 1)));
  }

  void setRequest() {
    addHeader("Connection: close");
    addHeader("Expect:");  // libcurl would wait for a 100 before a large body
    if (call_.method == "POST") {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call_.body.size()));
      set(CURLOPT_POSTFIELDS, call_.body.c_str());
      addHeader(call_.body.empty() ? "Content-Type:" : "Content-Type: application/json");
    } else {
      set(CURLOPT_CUSTOMREQUEST, call_.method.c_str());
    }
    for (const std::string& line : call_.headers) addHeader(line);
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  void addHeader(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)headers_.release();
    headers_.reset(longer);
  }

  // Returns false if the call was stopped.
  bool perform(const std::stop_token& stop) {
    constexpr int kLongestWaitMs = 1'000;
    curl_multi_add_handle(multi_.get(), easy_.get());
    const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
    for (;;) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw std::bad_alloc();
      if (running == 0) return true;
      if (stop.stop_requested()) return false;
      curl_multi_poll(multi_.get(), nullptr, 0, kLongestWaitMs, nullptr);
    }
  }

  int status() const {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  bool isConnected() const {
    curl_off_t when = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_CONNECT_TIME_T, &when);
    return when > 0;
  }

  std::string reasonOf(CURLcode code) const {
    if (isTooLarge_) return "the answer is larger than " + std::to_string(call_.mostBytes) + " bytes";
    if (code == CURLE_OPERATION_TIMEDOUT) {
      return isConnected() ? "the answer did not come in time" : "no connection was made in time";
    }
    long number = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number != 0) return std::generic_category().message(static_cast<int>(number));
    return curl_easy_strerror(code);
  }

  // Called from C code, where exceptions must not pass.
  static std::size_t addBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      return transfer.addPiece({bytes, count}) ? count : 0;
    } catch (...) {
      transfer.outOfMemory_ = true;
      return 0;
    }
  }

  bool addPiece(std::string_view piece) {
    constexpr int kGood = 200;
    if (call_.sink != nullptr && status() == kGood) return call_.sink->addPiece(piece);
    isTooLarge_ = piece.size() > call_.mostBytes - answer_.body.size();
    if (!isTooLarge_) answer_.body += piece;
    return !isTooLarge_;
  }

  const SocketCall& call_;
  SocketAnswer answer_;
  bool isTooLarge_ = false;
  bool outOfMemory_ = false;  // a callback ran out of memory
  std::unique_ptr<curl_slist, FreeCurl> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, FreeCurl> easy_;
};

}  // namespace

std::variant<SocketAnswer, NoAnswer> callSocket(const std::string& path, const SocketCall& call,
                                                const std::stop_token& stop) {
  if (!isLibcurlStarted()) return NoAnswer{"libcurl does not start", false};
  return Transfer(path, call).run(stop);
}

std::string encodeForUrl(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos) {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += kHex[static_cast<unsigned char>(c) >> 4];
    encoded += kHex[static_cast<unsigned char>(c) & 0xf];
  }
  return encoded;
}

}  // namespace jobq::docker
