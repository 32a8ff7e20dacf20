#include "http_transfer.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "jobq/net_guard.h"

namespace jobq::image {

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
using Easy = std::unique_ptr<CURL, FreeEasy>;
using Multi = std::unique_ptr<CURLM, FreeMulti>;
using HeaderList = std::unique_ptr<curl_slist, FreeList>;

std::string hexSha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
  constexpr const char* kHex = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text.push_back(kHex[digest[i] >> 4]);
    text.push_back(kHex[digest[i] & 0xf]);
  }
  return text;
}

net::AddressClass classifyAddress(const curl_sockaddr& address, std::string& shown) {
  char text[INET6_ADDRSTRLEN] = "";
  net::AddressClass reach = net::AddressClass::forbidden;
  if (address.family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address.addr, sizeof v4);
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    reach = net::classifyAddress(bytes);
  } else if (address.family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, static_cast<const void*>(&address.addr), sizeof v6);
    std::array<std::uint8_t, 16> bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    reach = net::classifyAddress(bytes);
  }
  shown = text;
  return reach;
}

class Transfer {
 public:
  Transfer(const HttpRequest& request, std::stop_token stop)
      : request_(request), stop_(std::move(stop)), easy_(curl_easy_init()), multi_(curl_multi_init()) {
    if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
  }
  ~Transfer() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  std::variant<HttpReply, HttpFault> run() {
    setUp();
    if (request_.put) setUpPut(*request_.put);
    const CURLcode code = perform();
    if (code != CURLE_OK) return explain(code);
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &reply_.status);
    return std::move(reply_);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw std::bad_alloc();
  }

  void setUp() {
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, request_.maxRedirects > 0 ? 1L : 0L);
    set(CURLOPT_MAXREDIRS, request_.maxRedirects);
    set(CURLOPT_PROXY, "");
    set(CURLOPT_NOSIGNAL, 1L);
    // A hanging resolver is left to its thread, which cleans up later; the end of the transfer would wait for the
    // resolver otherwise.
    set(CURLOPT_QUICK_EXIT, 1L);
    // Without the option, the signed path could differ from the sent path.
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
    set(CURLOPT_USERAGENT, "jobq-image/1");
    set(CURLOPT_ERRORBUFFER, detail_.data());
    set(CURLOPT_OPENSOCKETFUNCTION, openSocket);
    set(CURLOPT_OPENSOCKETDATA, this);
    set(CURLOPT_WRITEFUNCTION, takeBody);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(request_.maxBody));
  }

  void addHeader(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    (void)headers_.release();
    headers_.reset(longer);
  }

  void setUpPut(const SignedPut& put) {
    set(CURLOPT_CUSTOMREQUEST, "PUT");
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(put.body.size()));
    set(CURLOPT_POSTFIELDS, put.body.data());
    // libcurl 7.88 signs the hash of the body and leaves the header with the hash, required by S3, to the caller.
    addHeader("x-amz-content-sha256: " + hexSha256(put.body));
    addHeader("Content-Type: " + std::string(put.mediaType));
    set(CURLOPT_HTTPHEADER, headers_.get());
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + std::string(put.region) + ":s3").c_str());
    set(CURLOPT_USERNAME, std::string(put.accessId).c_str());
    set(CURLOPT_PASSWORD, std::string(put.accessSecret).c_str());
  }

  // Uses the multi interface, because only its wait can be ended from another thread.
  CURLcode perform() {
    curl_multi_add_handle(multi_.get(), easy_.get());
    const std::stop_callback wake(stop_, [this] { curl_multi_wakeup(multi_.get()); });
    int running = 1;
    while (!stop_.stop_requested()) {
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (running == 0) break;
      // libcurl 7.88 gives up an address when its share of the time is over, and tries the next address at the next
      // call.
      constexpr int kLongestWaitMs = 100;
      curl_multi_poll(multi_.get(), nullptr, 0, kLongestWaitMs, nullptr);
    }
    if (running != 0) return CURLE_ABORTED_BY_CALLBACK;
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  }

  HttpFault explain(CURLcode code) const {
    if (stop_.stop_requested()) return {true, "the job was stopped"};
    if (tooLarge_ || code == CURLE_FILESIZE_EXCEEDED) {
      return {false, "the reply is larger than " + std::to_string(request_.maxBody) + " bytes; offer a smaller file"};
    }
    if (code == CURLE_COULDNT_CONNECT && !refusal_.empty()) return {false, refusal_};
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT:
        return {false, "the transfer took longer than " + std::to_string(request_.timeout.count()) +
                           " ms; use a faster server or raise the timeout"};
      case CURLE_TOO_MANY_REDIRECTS:
        return {false,
                "there are more than " + std::to_string(request_.maxRedirects) + " redirects; give the final address"};
      case CURLE_UNSUPPORTED_PROTOCOL:
        return {false, "the address leads to something other than http or https; give an http or https URL"};
      default: break;
    }
    const std::string detail = detail_.front() == '\0' ? curl_easy_strerror(code) : detail_.data();
    return {false, detail + "; check the address and try again"};
  }

  // Both callbacks are called from C code, where exceptions must not pass.
  static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
    try {
      return static_cast<Transfer*>(self)->openPermitted(*address);
    } catch (...) {
      return CURL_SOCKET_BAD;
    }
  }
  curl_socket_t openPermitted(const curl_sockaddr& address) {
    std::string shown;
    const net::AddressClass reach = classifyAddress(address, shown);
    if (net::isAllowed(reach, request_.allowPrivate)) {
      return socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
    }
    refusal_ =
        "the address " + shown +
        (reach == net::AddressClass::forbidden ? " is link-local, multicast or reserved, which is never allowed; use a "
                                                 "public address"
                                               : " is private, which is not allowed here; use a public address or set "
                                                 "net.allowPrivate");
    return CURL_SOCKET_BAD;
  }

  static std::size_t takeBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
    auto& transfer = *static_cast<Transfer*>(self);
    if (transfer.reply_.body.size() + count > transfer.request_.maxBody) {
      transfer.tooLarge_ = true;
      return 0;
    }
    try {
      transfer.reply_.body.append(bytes, count);
    } catch (...) {
      return 0;
    }
    return count;
  }

  const HttpRequest& request_;
  const std::stop_token stop_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  HttpReply reply_;
  std::string refusal_;
  bool tooLarge_ = false;
  HeaderList headers_;
  Easy easy_;
  Multi multi_;
};

}  // namespace

std::variant<HttpReply, HttpFault> transfer(const HttpRequest& request, std::stop_token stop) {
  return Transfer(request, std::move(stop)).run();
}

void prepareTransfers() { (void)curl_global_init(CURL_GLOBAL_DEFAULT); }

}  // namespace jobq::image
