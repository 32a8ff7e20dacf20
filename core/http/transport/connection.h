// One connection: reads heads, hands requests to the handlers above, keeps the framing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/http/api/api_request.h"
#include "core/http/transport/address_places.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_head.h"

namespace Poco::Net {
class HTTPRequestHandlerFactory;
class HTTPServerParams;
}  // namespace Poco::Net

namespace jobq {

class ClientWatch;
class ServerRequest;
class ServerResponse;

/// Used by one thread at a time: the porch's while it is parked, a serving one's otherwise.
class Connection {
 public:
  /// What all connections of a server share.
  struct Server {
    Poco::Net::HTTPRequestHandlerFactory& handlers;
    const Poco::Net::HTTPServerParams& params;
    Budget& waiting;  ///< places for calls that wait, and for bodies that come slowly
    Budget& readers;  ///< places for answers that are read slowly
    Budget& heads;    ///< bytes for what heads hold beyond Inbox::kFree
    ClientWatch& watch;
    const std::atomic<bool>& parting;  ///< each answer is the last one
    const std::atomic<bool>& crowded;
  };

  /// `id` is never used again for another connection. `place` is given back with the connection.
  Connection(std::uint64_t id, std::unique_ptr<ByteStream> stream, const Server& server,
             AddressPlaces::Place place = {})
      : place_(std::move(place)), id_(id), stream_(std::move(stream)), server_(server), buffer_(server.heads) {}

  std::uint64_t id() const noexcept { return id_; }
  ByteStream& stream() noexcept { return *stream_; }
  int descriptor() const noexcept { return stream_->descriptor(); }

  /// Reads without waiting. `yes`: there is something to serve, be it a refusal.
  enum class Ready { no, yes, gone };
  Ready receive();

  /// Part of a head has come, or of the handshake before it: the porch measures how long the rest takes.
  bool inHead() const noexcept { return !buffer_.empty() || stream_->handshaking(); }
  /// Lets go of the memory that it does not need while it is parked.
  void releaseMemory() noexcept { buffer_.releaseMemory(); }

  /// Whether the peers have not agreed on their keys yet. Then serve() goes on with that, which takes processor time,
  /// and waits for nothing.
  bool handshaking() const noexcept { return stream_->handshaking(); }

  /// Serves requests until none is there. Waits kLinger for the next one, unless threads are scarce.
  enum class Next {
    park,    ///< for the next request
    resume,  ///< when more of the handshake, or of the head behind it, has come: its deadline stays
    drain,   ///< everything is said; what the client still sends has to be dropped
    close
  };
  Next serve();

  /// Answers that the head did not come in time. Does not wait.
  Next refuseLateHead();

 private:
  bool awaitHead();
  Next serveOne();
  Next refuse(const ApiResponse& reply, bool hurried);
  Next afterLast();

  const AddressPlaces::Place place_;
  const std::uint64_t id_;
  const std::unique_ptr<ByteStream> stream_;
  const Server& server_;
  ReadBuffer buffer_;
  HeadScanner scanner_;
  HeadScanner::State head_ = HeadScanner::State::incomplete;
  bool gone_ = false;
};

}  // namespace jobq
