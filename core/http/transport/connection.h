// One connection: reads heads, gives requests to their handlers, keeps the framing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/clock.h"
#include "core/http/transport/address_places.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection_ownership.h"
#include "core/http/transport/crowd.h"
#include "core/http/transport/read_buffer.h"
#include "core/http/transport/request_head.h"
#include "core/http/transport/slow_readers.h"
#include "core/http/transport/thread_stay.h"

namespace Poco::Net {
class HTTPServerParams;
}  // namespace Poco::Net

namespace jobq {

class CallResumer;
class ConnectionPlaces;
class RequestHandlerFactory;

/// Used by one thread at a time: the reactor thread while it reads a head or ends a late connection, an HTTP thread
/// while a request is served, a worker's thread while it has borrowed or taken the connection to send the answer. A
/// parked connection has no thread, also if its request waits for an event.
class Connection {
 public:
  /// The objects shared by all connections of a server. All outlive the connections.
  struct Server {
    RequestHandlerFactory& handlers;
    const Poco::Net::HTTPServerParams& params;
    Budget& waiting;  ///< slots for calls that wait for a job, and for request bodies that come slowly
    SlowReaders& readers;
    Budget& heads;  ///< bytes of heads beyond ReadBuffer::kFree
    ConnectionPlaces& places;
    CallResumer& resumer;                  ///< continues requests that wait; a request has the id of its connection
    const std::atomic<bool>& closing;      ///< set when the server drains: each answer then closes its connection
    const std::atomic<bool>& threadsBusy;  ///< true while more than half of the HTTP threads are busy
    const Crowd& crowd;
    const TimeSource& time = TimeSource::ofMachine();
  };

  /// `id` is never used for another connection. The destructor of the connection returns `place`.
  Connection(std::uint64_t id, std::unique_ptr<ByteStream> stream, const Server& server,
             AddressPlaces::Place place = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint64_t id() const noexcept { return id_; }
  /// Until the peers have agreed on their keys (ByteStream::handshaking) serve() continues the handshake, which takes
  /// processor time, and waits for nothing.
  ByteStream& stream() const noexcept { return *stream_; }

  /// Reads without waiting. Returns `yes` if there is a request or a refusal to serve, `probe` for a request of a
  /// supervisor (isProbe), `no` if a part is missing, `gone` if the peer has closed. Throws std::bad_alloc.
  enum class Ready { no, yes, probe, gone };
  Ready receive();

  /// Returns true if a part of a head, or of the handshake before the head, has come. The reactor bounds the time until
  /// the rest comes.
  bool inHead() const noexcept { return !buffer_.empty() || stream_->handshaking(); }
  /// Returns true if the connection must stay open although it is idle (ConnectionOwner::needsConnection).
  bool isNeeded() const noexcept;
  /// Frees the memory that a parked connection does not need.
  void releaseMemory() noexcept { buffer_.releaseMemory(); }

  /// Serves requests until no request is left, or a request has to wait; then the next call continues that request.
  /// Waits up to kLinger (50 ms) for the next request, and up to kStay (20 ms) for the event of a request that
  /// waits briefly, unless more than half of the HTTP threads are busy or the server is draining. Waits for no next
  /// request behind a quick one in a crowd, because the reactor thread serves that one. Throws what a handler throws,
  /// and std::bad_alloc.
  enum class Next {
    park,     ///< for the next request
    resume,   ///< for the rest of the TLS handshake, or of the first head after it; the deadline of that head stays
    suspend,  ///< until CallResumer::resume() or the end of the client; noteClientLeft() says the latter
    suspendUnwatched,  ///< until CallResumer::resumeAtReactor(), within milliseconds
    awaitInput,        ///< for the rest of a body, within timeLeft()
    awaitOutput,       ///< for a client that reads its answer slowly, within timeLeft()
    needsThread,       ///< the request may block, or a further one has come: serve() continues
    discardInput,      ///< after the last answer, for a moment, so that the client can read the answer
    close
  };
  Next serve();
  /// Serves the request whose head has come, if the request is quick, without blocking, or continues a request that is
  /// suspended unwatched. Returns Next::needsThread for any other request. The reactor thread. Throws as serve() does.
  Next serveQuickly();

  /// Returns the stay of the thread of serve(), which waits for the event of a request. Any thread, while the
  /// connection lives.
  ThreadStay& threadStay() noexcept { return stay_; }
  /// Continues the request on the thread that has borrowed the connection, and ends the loan.
  void continueBorrowed() noexcept;

  /// Continues a suspended request on the calling thread, which owns the connection. Never waits. Returns no value if
  /// the answer is sent and the next request may be here already, so that the connection needs a thread. Throws what a
  /// handler throws, and std::bad_alloc.
  std::optional<Next> continueSuspended();

  /// Notes that the client has closed its side. The request waits.
  void noteClientLeft() noexcept;
  /// Returns the time in which further bytes of the body have to come, or the time until the answer is tried again
  /// although the client has read nothing. The request waits for input or output.
  std::chrono::milliseconds timeLeft() const noexcept;

  /// Ends a connection whose head is late: answers 408, or closes without an answer during the TLS handshake. Does not
  /// wait. Throws std::bad_alloc.
  Next refuseLateHead();

 private:
  struct OpenRequest;

  /// The thread that continues a request: one of the pool, which may stay; one that ends a wait, and goes on with its
  /// own work; or the reactor thread, which must not block.
  enum class Thread { pool, outside, reactor };

  bool awaitHead();
  std::optional<Next> openRequest();
  Next continueRequest(Thread thread);
  std::optional<Next> stay();
  Next refuse(int status, std::string_view sentence);
  Next afterLast();

  const AddressPlaces::Place place_;
  const std::uint64_t id_;
  const std::unique_ptr<ByteStream> stream_;
  const Server& server_;
  ReadBuffer buffer_;
  HeadScanner scanner_;
  HeadScanner::State head_ = HeadScanner::State::incomplete;
  bool gone_ = false;
  bool mayBlock_ = true;   // the thread that continues the request
  bool wasQuick_ = false;  // the last request
  ConnectionOwnership ownership_;
  ThreadStay stay_;
  Next afterLoan_ = Next::close;       // the next step behind the last loan
  std::exception_ptr loanFault_;       // of the last loan; thrown by the staying thread
  std::unique_ptr<OpenRequest> open_;  // refers to the members above
};

}  // namespace jobq
