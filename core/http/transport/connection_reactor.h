// The porch of the front door: listener, and every connection that has nothing to be served. One thread looks after
// all of them with epoll: an idle client, and one that takes its time over its head, cost no thread. A connection with
// a whole head goes to a serving thread and comes back when it is quiet.
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

/// Deadlines are those of the steady clock: they are about sockets, not about jobs.
class ConnectionReactor final : public Service, private ClientWatch {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  struct Rules {
    std::size_t threads;                  ///< that serve, at most
    std::chrono::milliseconds keepAlive;  ///< how long a connection may be idle
    std::size_t perAddress;               ///< connections that one peer address may have at once; 0: any number
    const TlsContext* tls;                ///< null: plain
    RequestHandlerFactory& handlers;
    const Poco::Net::HTTPServerParams& params;
    Budget& waiting;
  };

  /// Takes the listening socket over; it accepts from start() on.
  ConnectionReactor(int listener, const Rules& rules, Log& log);
  ~ConnectionReactor() override;

  void start() override;

  /// Every answer from now on says `Connection: close`, and does.
  void announceClose() noexcept { parting_ = true; }
  /// Nobody new comes in either: the listener is closed, idle connections are shut.
  void drain();
  /// Waits until nothing is being served. False: time is up.
  bool awaitQuiet(std::chrono::milliseconds atMost);

  /// Shuts what is still being served, and joins all threads.
  void stop() override;

  /// Returns how many connections are being served or stand in line for a thread. Any thread.
  std::size_t serving();

 private:
  enum class Stay { idle, head, leaving };
  struct Parked {
    std::unique_ptr<Connection> connection;
    Stay stay;
    Moment deadline;
    std::size_t dropped = 0;  // while leaving
  };
  struct Serving {
    Connection* connection;
    Moment headEnd;  // until when its handshake and the first head behind it have to have come
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

  // The porch thread's own.
  std::uint64_t lastId_;
  FreedMemory freed_;
  std::unique_ptr<char[]> scrap_;

  Mutex mutex_;
  Condition quiet_;
  ParkedMap parked_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::pair<Moment, std::uint64_t>> deadlines_ JOBQ_GUARDED_BY(mutex_);  // of parked_
  std::unordered_map<std::uint64_t, Serving> serving_ JOBQ_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, std::stop_source> watched_ JOBQ_GUARDED_BY(mutex_);
  Moment wakesAt_ JOBQ_GUARDED_BY(mutex_){};  // when the porch thread looks by itself
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace jobq
