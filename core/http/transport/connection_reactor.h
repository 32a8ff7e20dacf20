// The listener and all connections without a request in service. A single thread watches them with epoll: an idle
// client, and a client that sends its head slowly, occupy no thread. A connection with a whole head goes to a thread of
// the HttpThreadPool and returns when it is quiet.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/service.h"
#include "core/http/transport/acceptor.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/freed_memory.h"
#include "core/http/transport/http_thread_pool.h"
#include "core/http/transport/message.h"
#include "jobq/log.h"
#include "jobq/mutex.h"

namespace Poco::Net {
class HTTPServerParams;
}

namespace jobq {

class RequestHandlerFactory;

/// Deadlines follow the steady clock, because they concern sockets and not jobs.
class ConnectionReactor final : public Service, private ClientWatch {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  struct Rules {
    std::size_t threads;                  ///< most threads that serve requests
    std::chrono::milliseconds keepAlive;  ///< longest idle time of a connection
    std::size_t perAddress;               ///< most connections of a peer address at once; 0 means any number
    const TlsContext* tls;                ///< null without TLS
    RequestHandlerFactory& handlers;
    const Poco::Net::HTTPServerParams& params;
    /// Slots for waiting callers, also used for slow bodies.
    Budget& waiting;
  };

  /// Takes ownership of `listener`; connections are accepted from start() on. `log` and everything that `rules` refers
  /// to outlive the reactor.
  ConnectionReactor(int listener, const Rules& rules, Log& log);
  ~ConnectionReactor() override;

  /// Starts the reactor thread. Throws Error if the system gives no descriptors for epoll.
  void start() override;

  /// Makes every later answer say `Connection: close`, and closes the connection behind the answer.
  void announceClose() noexcept { parting_ = true; }
  /// Calls announceClose(), refuses new connections and closes all connections without a request in service.
  void drain();
  /// Waits until no connection is served or parked, for `atMost`. Returns false if the time is over.
  bool awaitQuiet(std::chrono::milliseconds atMost);

  /// Calls drain(), cuts the connections that are still served, and joins all threads.
  void stop() override;

  /// Returns the number of connections that are served or queued for a thread. Any thread.
  std::size_t serving();

 private:
  enum class Stay { idle, head, leaving };
  struct Parked {
    std::unique_ptr<Connection> connection;
    Stay stay;
    Moment deadline;
    std::size_t dropped = 0;  // bytes dropped so far, while leaving
  };
  struct Serving {
    Connection* connection;
    Moment headEnd;  // latest moment for the handshake and the first head behind it
  };
  using ParkedMap = std::unordered_map<std::uint64_t, Parked>;

  std::stop_token watch(std::uint64_t connection) override;
  void unwatch(std::uint64_t connection) noexcept override;

  void loop();
  void acceptAll();
  void admit(Acceptor::Accepted accepted);
  void returnFreedMemory();
  void handleEvent(std::uint64_t id);
  void readHead(Parked parked);
  void dropInput(Parked parked);
  void endLate();
  void closeUnserved();
  int untilNextDeadline();

  void toServing(std::unique_ptr<Connection> connection, Moment headEnd);
  void serve(std::unique_ptr<Connection> connection);
  void continueAfter(std::unique_ptr<Connection> connection, Connection::Next next);
  void parkConnection(Parked parked);
  std::optional<Parked> unpark(std::uint64_t id) JOBQ_REQUIRES(mutex_);
  void arm(const Connection& connection, std::uint32_t events) const noexcept;
  void wake() const noexcept;

  const Rules rules_;
  Log& log_;
  std::atomic<bool> parting_ = false;
  std::atomic<bool> draining_ = false;
  Acceptor acceptor_;
  Budget readers_;
  Budget heads_;
  HttpThreadPool threads_;
  const Connection::Server server_;

  const int epoll_;
  const int wakeup_;  // an eventfd

  // Used by the reactor thread only.
  std::uint64_t lastId_;
  FreedMemory freed_;
  std::unique_ptr<char[]> scrap_;

  Mutex mutex_;
  Condition quiet_;
  ParkedMap parked_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::pair<Moment, std::uint64_t>> deadlines_ JOBQ_GUARDED_BY(mutex_);  // deadlines of parked_
  std::unordered_map<std::uint64_t, Serving> serving_ JOBQ_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::stop_source> watched_ JOBQ_GUARDED_BY(mutex_);
  Moment wakesAt_ JOBQ_GUARDED_BY(mutex_){};  // when the reactor thread wakes without an event
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace jobq
