// A request and its answer over one connection: configures libcurl, waits for the transfer and explains failures.
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

#include "stdlib/http_answer.h"
#include "stdlib/http_call.h"
#include "stdlib/http_url.h"

namespace jobq::lua {

/// Performs one exchange, once, on one thread. The arguments of the constructor outlive the object.
class HttpExchange {
 public:
  /// Throws std::bad_alloc if libcurl has no memory.
  HttpExchange(const HttpRequest& request, const HttpUrl& url, IncomingAnswer& answer);
  ~HttpExchange() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  /// Performs the exchange and blocks until the transfer is over, until `end`, or until `isOver` returns true; `isOver`
  /// is called every 50 ms or more often. Returns nullopt if the answer is complete or is a redirect, whose body is not
  /// awaited. Returns HttpFault or HttpGivenUp otherwise. Throws std::bad_alloc and any exception of `isOver`.
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
  std::string refusal_;       // why the first refused address was refused
  bool connecting_ = false;   // a socket was opened for a permitted address
  bool outOfMemory_ = false;  // a callback ran out of memory
  std::unique_ptr<curl_slist, Free> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, Free> easy_;
};

}  // namespace jobq::lua
