// A request and its answer over one connection: libcurl set up, waited for and asked what went wrong.
#pragma once

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "http_answer.h"
#include "http_call.h"
#include "http_url.h"

namespace jobq::lua {

/// One thread; used once. What it is given outlives it.
class HttpExchange {
 public:
  HttpExchange(const HttpRequest& request, const HttpUrl& url, IncomingAnswer& answer);
  ~HttpExchange() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  /// Nothing when the answer is whole, or is a redirect, whose body is not waited for.
  std::optional<HttpOutcome> run(std::chrono::steady_clock::time_point end, const std::function<bool()>& isOver);

 private:
  struct Free {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };
  struct FreeMulti {
    void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
  };

  template <class Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_.get(), option, value) != CURLE_OK) throw std::bad_alloc();
  }
  void setUpConnection(std::chrono::steady_clock::time_point end);
  void setUpTrust();
  void setUpRequest();
  void setUpAnswer();
  void addHeader(const std::string& line);

  std::string reasonOf(CURLcode code) const;
  std::string reasonOfDelay() const;
  std::string reasonOfConnect() const;

  static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept;
  static std::size_t takeHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  static std::size_t takeBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  curl_socket_t openPermitted(const curl_sockaddr& address);

  const HttpRequest& request_;
  const HttpUrl& url_;
  IncomingAnswer& answer_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::string refusal_;       // why the first address was not connected to
  bool connecting_ = false;   // some address was
  bool outOfMemory_ = false;  // a hook was
  std::unique_ptr<curl_slist, Free> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, Free> easy_;
};

}  // namespace jobq::lua
