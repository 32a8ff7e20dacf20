// The smallest HTTP/1.1 client that knows exactly what it does not know: an answer was read whole, or nobody can say
// whether the server did what it was asked, or the request never left. It never sends anything twice.
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

struct Reply {
  enum class Fate {
    answered,
    unknown,  ///< sent, at least in part, and the connection ended before the whole answer
    unsent,   ///< there was nobody to connect to
    late,     ///< no answer within the client's patience, and the connection still stands
    broken,   ///< something came that is no HTTP answer; it is in `body`
  };
  Fate fate = Fate::unsent;
  int status = 0;
  std::string body;
  std::string head;  ///< the status line and the header lines
  Span span;

  /// The header's value; empty when it has none.
  std::string header(std::string_view name) const;
};

/// One connection, kept open between requests and opened anew after a fault. One thread.
class HttpClient {
 public:
  HttpClient(Address address, std::string key) : address_(std::move(address)), key_(std::move(key)) {}
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Throws nothing: everything that can go wrong is a fate. `header` is a further line, without its end; empty: none.
  Reply call(std::string_view method, std::string_view path, std::string_view body = {}, std::string_view header = {});

 private:
  bool open();
  void close();
  bool send(std::string_view text);
  Reply::Fate receive(Reply& reply);

  const Address address_;
  const std::string key_;
  int socket_ = -1;
};

Nanos monotonicNow();

}  // namespace jobq::fault
