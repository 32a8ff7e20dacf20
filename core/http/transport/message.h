// Poco's request and response interfaces over a connection of our own. What the rooms above get to see.
#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/SocketAddress.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <stop_token>
#include <streambuf>
#include <string>
#include <string_view>

#include "core/http/api/api_request.h"
#include "core/http/transport/body_reader.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_head.h"

namespace jobq {

/// Writes one response; a body of known length leaves with its head in one send. One thread.
class ServerResponse final : public Poco::Net::HTTPServerResponse {
 public:
  /// `toHead`: the request was a HEAD, so no body follows. `readers`: places for threads whose client reads slowly.
  /// `parting`: this is the connection's last response, whatever the client wants; looked at when the response leaves.
  ServerResponse(ByteStream& stream, bool toHead, bool http10, Budget& readers, const std::atomic<bool>& parting);
  ~ServerResponse() override;

  /// The connection ends with this response.
  void closeAfter() noexcept { close_ = true; }
  bool closes() const noexcept { return close_; }
  /// The thread cannot wait for this client: what does not leave at once is lost.
  void hurry() noexcept { hurried_ = true; }
  /// False: the client is gone.
  bool delivered() const noexcept { return delivered_; }

  void sendContinue() override;
  std::ostream& send() override;
  void sendFile(const std::string& path, const std::string& mediaType) override;
  void sendBuffer(const void* buffer, std::size_t length) override;
  void redirect(const std::string& uri, HTTPStatus status) override;
  void requireAuthentication(const std::string& realm) override;
  bool sent() const override { return sent_; }

  /// Ends a body that was written to send()'s stream.
  void finish();

 private:
  class BodyWriter;

  std::string head();
  void put(std::string_view first, std::string_view second);

  ByteStream& stream_;
  const bool toHead_;
  const bool http10_;
  Budget& readers_;
  const std::atomic<bool>& parting_;
  bool close_ = false;
  bool hurried_ = false;
  bool sent_ = false;
  bool delivered_ = true;
  std::unique_ptr<BodyWriter> writer_;
  std::unique_ptr<std::ostream> bodyStream_;
};

/// Watches sockets of clients whose call is waiting.
class ClientWatch {
 public:
  virtual ~ClientWatch() = default;
  /// The token is requested when the client closes its side.
  virtual std::stop_token watch(std::uint64_t connection) = 0;
  virtual void unwatch(std::uint64_t connection) noexcept = 0;
};

/// One thread. Everything that is lent to it outlives it.
class ServerRequest final : public Poco::Net::HTTPServerRequest, public Caller {
 public:
  struct Deps {
    ByteStream& stream;
    ReadBuffer& buffer;
    Budget& waiting;
    ClientWatch& watch;
    std::uint64_t connection;
    const Poco::Net::HTTPServerParams& params;
  };
  ServerRequest(const Deps& deps, const RequestHead& head, ServerResponse& response);
  ~ServerRequest() override;

  /// Says `100 Continue` first, to a client that waits for it.
  std::istream& stream() override;
  void limitBody(std::uint64_t bytes) noexcept { body_.limit(bytes); }
  const Poco::Net::SocketAddress& clientAddress() const override;
  const Poco::Net::SocketAddress& serverAddress() const override;
  const Poco::Net::HTTPServerParams& serverParams() const override { return deps_.params; }
  ServerResponse& response() const override { return response_; }
  bool secure() const override { return deps_.stream.secure(); }

  std::stop_token gone() override;

  /// Why the body's stream ended before the body did.
  const std::optional<Fault>& bodyFault() const noexcept { return body_.fault(); }

  /// Called before the answer is sent: an unread body either has come already and is dropped, or ends the connection.
  void passOverBody();
  /// The next bytes of the connection are the next request.
  bool bodyPassed() const noexcept { return !owesContinue_ && body_.complete(); }

 private:
  const Deps deps_;
  ServerResponse& response_;
  BodyReader body_;
  std::istream bodyStream_;
  bool owesContinue_;
  bool watched_ = false;
  mutable std::optional<Poco::Net::SocketAddress> client_;
  mutable std::optional<Poco::Net::SocketAddress> server_;
};

}  // namespace jobq
