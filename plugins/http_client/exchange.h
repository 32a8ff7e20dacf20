// A request and the answer for libcurl: the options, the arriving answer, and the failure. `transfer.cpp` performs an
// exchange on the thread of its caller, `transfer_loop.cpp` many on one thread.
#pragma once

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <variant>

#include "address_guard.h"
#include "incoming_answer.h"
#include "reasons.h"
#include "transfer.h"
#include "web_url.h"

namespace jobq::http_client {

/// Starts libcurl for the process at the first call. Returns the fault if libcurl does not start. Any thread.
std::optional<Fault> startLibcurl();

/// Returns the URL of a request that may begin, or the reason why it may not. Throws std::bad_alloc. Any thread.
std::variant<WebUrl, Fault> urlOf(const Request& request);

/// Returns the option of libcurl for authorities that is to be left empty: CURLOPT_CAINFO if `folder` has certificates
/// under the names looked up by OpenSSL, otherwise CURLOPT_CAPATH. Any thread.
CURLoption needlessAuthorities(const char* folder);

/// Returns the outcome of a transfer whose last exchange, with `url`, ended. Any thread.
Outcome outcomeOf(const WebUrl& url, IncomingAnswer& answer, std::optional<Fault> fault);

/// Returns the fault of a transfer that was stopped.
inline Fault stoppedFault() { return {FaultKind::stopped, "the transfer was stopped"}; }

/// Longest time without an exchange for which a connection is kept, and its longest life.
inline constexpr long kMostIdleSeconds = 10;
inline constexpr long kMostSecondsOfConnection = 60;

/// Decides about the connection of an exchange.
enum class Connections {
  single,  ///< a new connection, closed after the exchange
  kept,    ///< a kept or a new connection; libcurl may keep the connection for a later exchange
};

/// One exchange, used by one thread at a time. The arguments of the constructor outlive the object.
class Exchange {
 public:
  /// Throws std::bad_alloc if libcurl has no memory.
  Exchange(const Request& request, const WebUrl& url, IncomingAnswer& answer, Connections connections);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Sets the options, for an exchange that libcurl ends at `end`. Called once, before libcurl has the handle. Throws
  /// std::bad_alloc.
  void setUp(std::chrono::steady_clock::time_point end);

  /// Returns the handle for libcurl's multi interface, owned by the object.
  CURL* handle() const { return easy_.get(); }

  /// Returns no value if the answer is complete or has enough, and the fault otherwise. `code` is the result of
  /// libcurl. Called while libcurl still has the handle.
  std::optional<Fault> faultOf(CURLcode code) const;

 private:
  struct Free {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
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

  Fault fault(CURLcode code) const;
  Fault faultOfConnect(const FailedTransfer& failed) const;

  static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept;
  static std::size_t addHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  static std::size_t addBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept;
  curl_socket_t openAllowed(const curl_sockaddr& address);

  const Request& request_;
  const WebUrl& url_;
  IncomingAnswer& answer_;
  const Connections connections_;
  std::array<char, CURL_ERROR_SIZE> detail_{};
  std::optional<RefusedAddress> refused_;  // the first refused address
  int socketError_ = 0;                    // errno of a failed socket()
  bool connecting_ = false;                // a socket was opened for a permitted address
  bool outOfMemory_ = false;               // a callback ran out of memory
  std::unique_ptr<curl_slist, Free> headers_;
  const std::unique_ptr<CURL, Free> easy_;
};

}  // namespace jobq::http_client
