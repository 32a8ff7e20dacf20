// A minimal HTTP/1.1 client with an exact report: the whole answer was read, or the fate of the request at the server
// is unknown, or the request never left. No request is sent twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "history_rules.h"

namespace jobq::fault {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

struct HttpResponse {
  enum class Fate {
    answered,
    unknown,  ///< sent, at least in part, and the connection ended before the whole answer
    unsent,   ///< no server accepted the connection
    late,     ///< no answer within the client's timeout, and the connection still stands
    broken,   ///< the received bytes are no HTTP answer; the bytes are in `body`
  };
  Fate fate = Fate::unsent;
  int status = 0;
  std::string body;
  std::string head;  ///< the status line and the header lines
  Span span;

  /// Returns the header's value; empty without such a header.
  std::string header(std::string_view name) const;
};

/// A connection, kept open between requests and opened anew after a fault. Confined to one thread.
class HttpClient {
 public:
  HttpClient(Address address, std::string key) : address_(std::move(address)), key_(std::move(key)) {}
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Throws no exception: every failure is a fate. `header` is a further header line without its end; empty for no
  /// further line.
  HttpResponse call(std::string_view method, std::string_view path, std::string_view body = {},
                    std::string_view header = {});

 private:
  bool open();
  void close();
  bool send(std::string_view text);
  HttpResponse::Fate receive(HttpResponse& response);

  const Address address_;
  const std::string key_;
  int socket_ = -1;
};

Nanos monotonicNow();

}  // namespace jobq::fault
