// The listener and all connections without a thread. A single thread watches them with epoll: an idle client, a client
// that sends its request slowly, and a client whose request waits for a job occupy no thread. A connection with a whole
// head goes to a thread of the HttpThreadPool and returns when it is quiet, or when its request has to wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/outside_threads.h"
#include "core/base/service.h"
#include "core/base/suspended_call.h"
#include "core/http/transport/acceptor.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/connection_table.h"
#include "core/http/transport/crowd.h"
#include "core/http/transport/event_poll.h"
#include "core/http/transport/http_thread_pool.h"
#include "core/http/transport/parked_connections.h"
#include "core/http/transport/slow_readers.h"
#include "jobq/log.h"
#include "jobq/mutex.h"

namespace Poco::Net {
class HTTPServerParams;
}

namespace jobq {

class RequestHandlerFactory;

/// Owns the thread that watches the connections; ConnectionTable knows where each of them is.
class ConnectionReactor final : public Service, public CallResumer, private ConnectionHandler {
 public:
  using Moment = ConnectionTable::Moment;

  struct Rules {
    HttpThreadPool::Size threads;         ///< of the threads that serve requests
    std::chrono::milliseconds keepAlive;  ///< longest idle time of a connection
    std::size_t perAddress;               ///< most connections of a peer address at once; 0 means any number
    const TlsContext* tls;                ///< null without TLS
    RequestHandlerFactory& handlers;
    const Poco::Net::HTTPServerParams& params;
    /// Slots for slow bodies.
    Budget& waiting;
    /// More requests at once are a crowd (Crowd).
    std::size_t crowdFrom = Crowd::beginsAt();
    /// Bound of the requests that the reactor thread serves in one turn.
    int mostQuickInTurn = Crowd::mostInTurn();
  };

  /// Takes ownership of `listener`; connections are accepted from start() on. `log` and everything that `rules` refers
  /// to outlive the reactor.
  ConnectionReactor(int listener, const Rules& rules, Log& log);
  ~ConnectionReactor() override;

  /// Starts the reactor thread. Throws Error if the system gives no descriptors for epoll.
  void start() override;

  /// Makes every later answer say `Connection: close`, and closes the connection behind the answer.
  void announceClose() noexcept { closing_ = true; }
  /// Calls announceClose(), refuses new connections and closes all connections without a request in service.
  void drain();
  /// Waits until no connection is served, parked or in the hands of the reactor thread, for `atMost`. Returns false if
  /// the time is over.
  bool awaitQuiet(std::chrono::milliseconds atMost) { return connections_.awaitQuiet(atMost); }

  /// Returns the number of connections whose request waits for a thread, for an event, or for the rest of its answer.
  /// Any thread.
  std::size_t openRequests() { return connections_.openRequests(); }

  /// Calls drain(), cuts the connections that are still served, and joins all threads.
  void stop() override;

  /// Continues the request of the connection `call` on a thread of the pool. Changes nothing after stop().
  void resume(std::uint64_t call) noexcept override;
  /// Continues the request on the calling thread if the request is suspended, or if its HTTP thread stays with the
  /// connection; otherwise the same as resume().
  void continueHere(std::uint64_t call) noexcept override;
  /// Continues a request on the reactor thread, if Next::suspendUnwatched was its last step.
  void resumeAtReactor(std::uint64_t call) noexcept override;

 private:
  void loop();
  void acceptAll();
  void handleEvent(std::uint64_t id);
  void readHead(ParkedConnection parked);
  void handleExpiredDeadlines();
  void continueResumed();

  template <class Step>
  void guarded(std::uint64_t id, Step&& step);
  void toServing(std::unique_ptr<Connection>&& connection, Moment headDeadline);
  void serveHead(std::unique_ptr<Connection> connection, Connection::Ready ready, Moment headDeadline);
  void serve(std::unique_ptr<Connection> connection) override;
  void continueAfter(std::unique_ptr<Connection> connection, Connection::Next next);

  const Rules rules_;
  Log& log_;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> stopping_ = false;
  Acceptor acceptor_;
  SlowReaders readers_;
  Budget heads_;
  EventPoll poll_;
  ConnectionTable connections_;
  Crowd crowd_;
  HttpThreadPool threads_;
  OutsideThreads answering_;  // threads outside the pool, in continueHere()
  const Connection::Server server_;

  Mutex resumedMutex_;
  std::vector<std::uint64_t> resumed_ JOBQ_GUARDED_BY(resumedMutex_);  // calls of resumeAtReactor()

  // Used by the reactor thread only.
  std::vector<std::uint64_t> continued_;  // the calls of the present turn
  std::size_t quickOpen_ = 0;             // requests suspended unwatched
  int quickInTurn_ = 0;
  std::uint64_t lastId_;
  std::unique_ptr<char[]> discardBuffer_;

  std::thread thread_;
};

}  // namespace jobq
