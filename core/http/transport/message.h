// Poco's interfaces of requests and responses over a connection of the transport: the view that handlers have.
#pragma once

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/SocketAddress.h>

#include <atomic>
#include <chrono>
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
#include <utility>

#include "core/base/connection_owner.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/body_reader.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connected_client.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_handler.h"
#include "core/http/transport/request_head.h"
#include "core/http/transport/slow_readers.h"

namespace jobq {

/// Writes one response. A body of known length leaves with the head in one send. One thread.
class ServerResponse final : public Poco::Net::HTTPServerResponse {
 public:
  /// `readers` has the places for clients that read slowly. `toHead` is true for a HEAD request: no body follows.
  /// `closing`, read when the response leaves, is true if this is the last response of the connection. All references
  /// outlive the response.
  ServerResponse(const AnswerReader& reader, SlowReaders& readers, bool toHead, bool http10,
                 const std::atomic<bool>& closing);
  ~ServerResponse() override;

  /// Ends the connection with this response.
  void closeAfter() noexcept { close_ = true; }
  bool closes() const noexcept { return close_; }
  /// Returns false if the client has left or was too slow.
  bool delivered() const noexcept { return delivered_; }

  /// Does not wait: a client that has no room for these bytes loses the connection.
  void sendContinue() override;
  std::ostream& send() override;
  void sendFile(const std::string& path, const std::string& mediaType) override;
  void sendBuffer(const void* buffer, std::size_t length) override;
  /// Sends the body without waiting: a client that has no room for it loses the connection.
  void sendAtOnce(std::string_view body);
  /// Sends the body without waiting for the client. The response keeps what does not leave at once: hasRest().
  /// With `constant` the body is that text instead, which outlives the response and is not copied.
  void sendText(std::string body, std::string_view constant = {});
  /// Sends a part of a body of unknown length, without waiting for the client; the first part with the head. The
  /// response has no rest. With `isLast` the body ends.
  void sendPart(std::string part, bool isLast);
  /// Returns true if a part of the body has not left.
  bool hasRest() const noexcept { return rest_.has_value(); }
  /// Sends more of the rest, without waiting. The rest is dropped, and delivered() false, if the client has left or is
  /// too slow.
  void sendRest();
  /// Returns the time after which sendRest() is called again, although the client has read nothing.
  std::chrono::milliseconds sendTimeLeft() const noexcept { return rest_->deadline.untilNextQuestion(); }
  void redirect(const std::string& uri, HTTPStatus status) override;
  void requireAuthentication(const std::string& realm) override;
  bool sent() const override { return sent_; }

  /// Ends a body written to the stream of send().
  void finish();

 private:
  class BodyWriter;

  struct Rest {
    std::string head;
    std::string body;
    std::string_view constant;  // instead of `body`
    std::size_t sent;           // of head and body together
    TransferDeadline deadline;

    std::string_view text() const noexcept { return constant.empty() ? std::string_view(body) : constant; }
  };

  void beginSized(std::size_t length);
  std::string head();
  void put(std::string_view first, std::string_view second, TransferDeadline deadline);

  const AnswerReader& reader_;
  ByteStream& stream_;
  SlowReaders& readers_;
  const bool toHead_;
  const bool http10_;
  const std::atomic<bool>& closing_;
  bool close_ = false;
  bool sent_ = false;
  bool delivered_ = true;
  std::optional<Rest> rest_;
  std::unique_ptr<BodyWriter> writer_;
  std::unique_ptr<std::ostream> bodyStream_;
};

class Connection;

/// Knows where the connections are. Any thread.
class ConnectionPlaces {
 public:
  virtual ~ConnectionPlaces() = default;
  /// Begins a stay of the calling thread with the connection (ThreadStay::begin). Returns false without a stay if
  /// the request was resumed since it was served last: the request then continues.
  [[nodiscard]] virtual bool beginStay(Connection& connection) = 0;
  /// Returns a token that is requested when the client of the connection closes its side.
  virtual std::stop_token watch(std::uint64_t connection) = 0;
  /// Ends the watch of the connection: its token is requested no more.
  virtual void unwatch(std::uint64_t connection) noexcept = 0;
};

/// The objects of a connection that its request uses. All of them outlive the request.
struct RequestDeps {
  ByteStream& stream;
  ReadBuffer& buffer;
  Budget& waiting;
  ConnectionPlaces& places;
  SuspendedCall call;                             ///< has the id of the connection of the request
  std::shared_ptr<const ConnectionOwner>& owner;  ///< of the connection
  const std::atomic<bool>& threadsBusy;
  const bool& mayBlock;  ///< of the thread that continues the request
  AnswerReader& reader;  ///< of the response
  const Poco::Net::HTTPServerParams& params;
};

/// The client of one request. One thread at a time.
class RequestClient final : public ConnectedClient {
 public:
  /// `deps` outlives the client.
  explicit RequestClient(const RequestDeps& deps) noexcept : deps_(deps) {}
  ~RequestClient() override { endWatch(); }

  std::stop_token disconnected() override;
  bool hasLeft() const noexcept override { return hasLeft_ || (asksSocket_ && deps_.stream.peerHasClosed()); }
  void setOwner(std::shared_ptr<const ConnectionOwner> owner) noexcept override;
  SuspendedCall call() noexcept override { return deps_.call; }
  bool mayBlock() const noexcept override { return deps_.mayBlock; }

  /// Notes that the request is suspended for the first time, or again.
  void noteSuspended() noexcept { asksSocket_ = true; }
  /// Notes that the client has closed its side.
  void noteLeft() noexcept { hasLeft_ = true; }
  /// Ends the watch of disconnected(), if there is one. The answer is made, and may wait for its reader.
  void endWatch() noexcept;

 private:
  const RequestDeps& deps_;
  bool watched_ = false;
  bool asksSocket_ = false;
  bool hasLeft_ = false;
};

/// One request. One thread at a time.
class ServerRequest final : public Poco::Net::HTTPServerRequest, public RequestExtension {
 public:
  using Progress = RequestHandler::Progress;

  ServerRequest(const RequestDeps& deps, const RequestHead& head, ServerResponse& response);

  /// Returns the body for a reader that holds its thread until all bytes have come. The first call sends `100 Continue`
  /// to a client that waits for it.
  std::istream& stream() override;
  const Poco::Net::SocketAddress& clientAddress() const override;
  const Poco::Net::SocketAddress& serverAddress() const override;
  const Poco::Net::HTTPServerParams& serverParams() const override { return deps_.params; }
  ServerResponse& response() const override { return response_; }
  bool secure() const override { return deps_.stream.secure(); }

  RequestClient& client() const noexcept override { return client_; }
  void noteKey() noexcept override { deps_.reader.hasKey = true; }
  void noteProgress(Progress progress) noexcept override { progress_ = progress; }
  std::size_t readBody(char* to, std::size_t size, std::uint64_t limit) override;
  bool isPaused() const noexcept override { return body_.isPaused(); }
  const Result<void, Fault>& bodyResult() const noexcept override { return body_.result(); }
  /// Drops an unread body that has already come; any other unread body ends the connection.
  void discardBody() override;
  Sending sendText(std::string body, std::string_view constant) override;
  Sending sendPart(std::string part, bool isLast) override;
  void abandon() noexcept override { response_.closeAfter(); }

  /// Returns the state that the handler has noted, and forgets it.
  Progress notedProgress() noexcept { return std::exchange(progress_, Progress::answered); }
  /// Returns the time in which further bytes of a paused body have to come.
  std::chrono::milliseconds inputTimeLeft() const noexcept { return body_.timeLeft(); }
  /// Returns true if the next bytes of the connection are the next request.
  bool isBodyConsumed() const noexcept { return !owesContinue_ && body_.complete(); }

 private:
  Sending sending() const noexcept;

  const RequestDeps deps_;
  ServerResponse& response_;
  BodyReader body_;
  std::istream bodyStream_;
  bool owesContinue_;
  Progress progress_ = Progress::answered;
  mutable RequestClient client_;
  mutable std::optional<Poco::Net::SocketAddress> clientAddress_;
  mutable std::optional<Poco::Net::SocketAddress> serverAddress_;
};

}  // namespace jobq
