// A request and its answer over one connection: the options of libcurl, the wait for the transfer, and its failure.
#pragma once

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>

#include "address_guard.h"
#include "incoming_answer.h"
#include "transfer.h"
#include "web_url.h"

namespace jobq::http_client {

/// Performs one exchange, once, on one thread. The arguments of the constructor outlive the object.
class Exchange {
 public:
  /// Throws std::bad_alloc if libcurl has no memory.
  Exchange(const Request& request, const WebUrl& url, IncomingAnswer& answer);
  ~Exchange() { curl_multi_remove_handle(multi_.get(), easy_.get()); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Performs the exchange and blocks until the transfer is over, until `end`, until a request on `stop`, or until
  /// `check` (may be null) says so. Returns no value if the answer is complete or has enough, and the fault otherwise.
  /// Throws std::bad_alloc and any exception of `check`.
  std::optional<Fault> run(std::chrono::steady_clock::time_point end, const std::stop_token& stop, CancelCheck* check);

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
  void setUpBody();
  void setUpSignature(const AwsSignature& signature);
  void setUpAnswer();
  void addHeader(const std::string& line);

  bool perform(const std::stop_token& stop, CancelCheck* check);
  Fault fault(CURLcode code) const;

  static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept;
  static std::size_t addHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  static std::size_t addBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  curl_socket_t openAllowed(const curl_sockaddr& address);

  const Request& request_;
  const WebUrl& url_;
  IncomingAnswer& answer_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::optional<RefusedAddress> refused_;  // the first address that was refused
  int socketError_ = 0;                    // errno of a socket that could not be opened
  bool connecting_ = false;                // a socket was opened for a permitted address
  bool outOfMemory_ = false;               // a callback ran out of memory
  std::unique_ptr<curl_slist, Free> headers_;
  const std::unique_ptr<CURLM, FreeMulti> multi_;
  const std::unique_ptr<CURL, Free> easy_;
};

}  // namespace jobq::http_client
