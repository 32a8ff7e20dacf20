// One request and its reply on the wire, over Poco's request and response interfaces.
#pragma once

#include <optional>

#include "core/http/call.h"

namespace Poco::Net {
class HTTPServerRequest;
class HTTPServerResponse;
}  // namespace Poco::Net

namespace jobq {

/// One thread.
class Exchange {
 public:
  Exchange(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response)
      : request_(request), response_(response) {}

  /// Reads the whole body into the call, or says why not: too long, shorter than announced.
  std::optional<Reply> readBody(Call& call, std::size_t limit);

  /// Sends the reply. If the body was not read to its end, the connection closes, and what the client still sends is
  /// read and dropped for a while, so that every client gets to see the status.
  void send(const Reply& reply);

  /// The connection is of no more use.
  void abandon() noexcept;

 private:
  bool hasBody() const;
  void dropRest() noexcept;

  Poco::Net::HTTPServerRequest& request_;
  Poco::Net::HTTPServerResponse& response_;
  bool bodyRead_ = false;
};

/// 413, naming the limit.
Reply tooLarge(std::string_view path, std::size_t limit);

}  // namespace jobq
