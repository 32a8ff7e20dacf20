#include "core/http/transport/connection_reactor.h"

#include <Poco/Exception.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <exception>
#include <utility>

#include "core/http/transport/request_handler.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;
using State = ParkedConnection::State;

constexpr milliseconds kHeadTimeout{10'000};
constexpr milliseconds kLingeringCloseTimeout{2'000};
constexpr std::size_t kMaxDiscardedBytes = 256UL << 20;
constexpr std::size_t kDiscardBufferSize = 256UL << 10;
constexpr int kMaxDiscardReads = 16;  // reads in a row, so that a flooding client delays the others only briefly
constexpr int kMaxAcceptsPerEvent = 256;

/// At most this many clients read their answers slowly at once, because an unread answer holds its memory.
constexpr std::size_t kSlowReaderSlots = 128;

/// Bytes for all heads together. The first ReadBuffer::kFree bytes of each head do not count.
constexpr std::uint64_t kHeadMemory = 64UL << 20;

// Data of an epoll event: this value, EventPoll::kWakeup, or the id of a connection.
constexpr std::uint64_t kListener = 0;

/// Returns whether the client has sent bytes that nobody has read yet. A busy reactor may see a deadline before the
/// event.
bool hasInput(const Connection& connection) noexcept {
  char byte = 0;
  return ::recv(connection.stream().descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/// Drops the input of a lingering connection, by way of `scrap` of kDiscardBufferSize bytes. Returns true if the client
/// has closed the connection, or has sent too much.
bool hasDroppedAll(ParkedConnection& parked, char* scrap) {
  for (int i = 0; i < kMaxDiscardReads && parked.dropped < kMaxDiscardedBytes; ++i) {
    const auto got = parked.connection->stream().drop(scrap, kDiscardBufferSize);
    if (!got) return false;
    if (*got == 0) return true;
    parked.dropped += *got;
  }
  return parked.dropped >= kMaxDiscardedBytes;
}

}  // namespace

ConnectionReactor::ConnectionReactor(int listener, const Rules& rules, Log& log)
    : rules_(rules),
      log_(log),
      acceptor_(listener, rules.perAddress, log),
      readers_(kSlowReaderSlots),
      heads_(kHeadMemory),
      connections_(poll_),
      crowd_(rules.crowdFrom),
      threads_(rules.threads, *this, crowd_),
      server_{rules_.handlers, rules_.params, rules_.waiting,      readers_, heads_, connections_,
              *this,           closing_,      threads_.busyFlag(), crowd_},
      lastId_(EventPoll::kWakeup),
      discardBuffer_(new char[kDiscardBufferSize]) {}

ConnectionReactor::~ConnectionReactor() {
  stop();
  connections_.closeUnserved();  // now, because connections refer to members that are destroyed before connections_
}

void ConnectionReactor::start() {
  if (thread_.joinable()) return;
  poll_.start();
  acceptor_.watchWith(poll_.descriptor(), kListener);
  thread_ = std::thread([this] { loop(); });
}

void ConnectionReactor::drain() {
  announceClose();
  draining_ = true;
  connections_.drain();
  acceptor_.refuse();
  poll_.wake();
}

void ConnectionReactor::stop() {
  drain();
  connections_.beginStop();
  // The queued connections end here, so the table must forget them before they are destroyed.
  const auto dropped = threads_.close();
  connections_.cutServed(dropped);
  threads_.stop();
  answering_.close();
  stopping_ = true;
  poll_.wake();
  if (thread_.joinable()) thread_.join();
}

void ConnectionReactor::loop() {
  nameThread("reactor");
  for (;;) {
    const int wait = connections_.untilNextDeadline(acceptor_.retryAt(), std::chrono::steady_clock::now());
    const auto events = poll_.wait(wait);
    crowd_.noteReactor(events.size() + quickOpen_, std::chrono::steady_clock::now());
    quickInTurn_ = 0;
    for (const epoll_event& event : events) {
      const std::uint64_t id = event.data.u64;
      if (id == kListener) {
        acceptAll();
      } else if (id == EventPoll::kWakeup) {
        poll_.clearWakeup();
      } else {
        handleEvent(id);
      }
    }
    continueResumed();
    const bool isLast = stopping_;  // read before: all connections are closed in the last turn
    if (draining_) connections_.closeUnserved();
    handleExpiredDeadlines();
    rules_.handlers.endTurn();
    if (isLast) return;
  }
}

void ConnectionReactor::acceptAll() {
  if (draining_) return acceptor_.unwatch();
  for (int i = 0; i < kMaxAcceptsPerEvent; ++i) {
    try {
      auto accepted = acceptor_.next();
      if (!accepted) return;
      const int on = 1;
      ::setsockopt(accepted->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      std::unique_ptr<ByteStream> stream =
          rules_.tls != nullptr ? rules_.tls->stream(accepted->descriptor) : plainStream(accepted->descriptor);
      auto connection = std::make_unique<Connection>(++lastId_, std::move(stream), server_, std::move(accepted->place));
      // The connection stays registered with epoll for its whole life; events are requested later.
      if (!poll_.add(*connection)) continue;  // epoll has no room: the connection is closed here
      connections_.park({std::move(connection), State::idle, std::chrono::steady_clock::now() + rules_.keepAlive});
    } catch (const std::exception& error) {
      log_.write(LogLevel::error, "http.connection", error.what());
    }
  }
}

// Performs a step of one connection. An exception, such as std::bad_alloc, is logged and ends that connection only.
template <class Step>
void ConnectionReactor::guarded(std::uint64_t id, Step&& step) {
  try {
    return step();
  } catch (const Poco::Exception& error) {
    log_.write(LogLevel::error, "http.connection", error.displayText());
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, "http.connection", error.what());
  }
  connections_.forget(id);
}

void ConnectionReactor::handleEvent(std::uint64_t id) {
  guarded(id, [this, id] {
    auto parked = connections_.extractReady(id);
    if (!parked) return;
    switch (parked->state) {
      case State::lingeringClose:
        if (hasDroppedAll(*parked, discardBuffer_.get())) return connections_.forget(id);
        return connections_.park(std::move(*parked));
      case State::suspended: parked->connection->noteClientLeft(); [[fallthrough]];
      case State::awaitingInput:
      case State::awaitingOutput: return toServing(std::move(parked->connection), Moment::max());
      case State::idle:
      case State::readingHead: return readHead(std::move(*parked));
    }
  });
}

void ConnectionReactor::resume(std::uint64_t call) noexcept {
  guarded(call, [this, call] {
    if (auto connection = connections_.extractSuspended(call)) toServing(std::move(connection), Moment::max());
  });
}

void ConnectionReactor::continueHere(std::uint64_t call) noexcept {
  if (Connection* const borrowed = connections_.borrow(call)) return borrowed->continueBorrowed();
  const OutsideThreads::Entry entry(answering_);
  if (!entry.isAllowed()) return;
  std::unique_ptr<Connection> connection;  // outlives its place in the table, also behind an exception
  guarded(call, [this, call, &connection] {
    connection = connections_.extractSuspended(call);
    if (!connection || !connections_.beginServing(*connection, Moment::max())) return;
    const auto next = connection->continueSuspended();
    if (!next) return toServing(std::move(connection), Moment::max());
    continueAfter(std::move(connection), *next);
  });
}

void ConnectionReactor::resumeAtReactor(std::uint64_t call) noexcept {
  bool wakes = false;
  {
    const Lock lock(resumedMutex_);
    wakes = resumed_.empty();
    resumed_.push_back(call);  // within the memory that serveHead() has reserved
  }
  if (wakes) poll_.wake();
}

void ConnectionReactor::continueResumed() {
  {
    const Lock lock(resumedMutex_);
    continued_.assign(resumed_.begin(), resumed_.end());
    resumed_.clear();
  }
  for (const std::uint64_t id : continued_) {
    if (quickOpen_ > 0) --quickOpen_;
    std::unique_ptr<Connection> connection;  // outlives its place in the table, also behind an exception
    guarded(id, [this, id, &connection] {
      connection = connections_.extractSuspended(id);
      if (!connection || !connections_.beginServing(*connection, Moment::max())) return;
      const Connection::Next next = connection->serveQuickly();
      continueAfter(std::move(connection), next);
    });
  }
}

// Serves a whole head: a probe, and in a crowd a quick request, on the reactor thread, any other one on a thread of the
// pool. TLS takes processor time, so threads of the pool serve other requests of TLS too.
void ConnectionReactor::serveHead(std::unique_ptr<Connection> connection, Connection::Ready ready,
                                  Moment headDeadline) {
  const bool isForCrowd = rules_.handlers.makesQuickly() && crowd_.isLarge() && !connection->stream().secure();
  const bool servesItself = (isForCrowd && quickInTurn_ < rules_.mostQuickInTurn) || ready == Connection::Ready::probe;
  if (!servesItself) return toServing(std::move(connection), headDeadline);
  ++quickInTurn_;
  if (!connections_.beginServing(*connection, headDeadline)) return;
  guarded(connection->id(), [this, &connection] {
    {
      const Lock lock(resumedMutex_);
      resumed_.reserve(resumed_.size() + quickOpen_ + 1);
      continued_.reserve(resumed_.capacity());
    }
    const Connection::Next next = connection->serveQuickly();
    if (next == Connection::Next::suspendUnwatched) ++quickOpen_;
    continueAfter(std::move(connection), next);
  });
}

void ConnectionReactor::readHead(ParkedConnection parked) {
  const Moment headDeadline =
      parked.state == State::readingHead ? parked.deadline : std::chrono::steady_clock::now() + kHeadTimeout;
  // A handshake takes a millisecond of processor time, which would delay all other connections on this thread.
  if (parked.connection->stream().handshaking()) return toServing(std::move(parked.connection), headDeadline);
  const Connection::Ready ready = parked.connection->receive();
  switch (ready) {
    case Connection::Ready::gone: return connections_.forget(parked.connection->id());
    case Connection::Ready::yes:
    case Connection::Ready::probe: return serveHead(std::move(parked.connection), ready, headDeadline);
    case Connection::Ready::no: break;
  }
  if (parked.state == State::idle && parked.connection->inHead()) {
    parked.state = State::readingHead;
    parked.deadline = headDeadline;
  }
  // Bytes of TLS that are no part of a head do not prolong the idle time.
  if (parked.state == State::idle && parked.deadline <= std::chrono::steady_clock::now()) {
    return connections_.forget(parked.connection->id());
  }
  connections_.park(std::move(parked));
}

void ConnectionReactor::handleExpiredDeadlines() {
  const Moment now = std::chrono::steady_clock::now();
  acceptor_.retry(now);
  for (ParkedConnection& parked : connections_.extractLate(now)) {
    const std::uint64_t id = parked.connection->id();
    if (parked.state == State::idle && parked.connection->isNeeded()) {
      parked.deadline = now + rules_.keepAlive;
      connections_.park(std::move(parked));
      continue;
    }
    if (parked.state == State::lingeringClose || (parked.state == State::idle && !hasInput(*parked.connection))) {
      connections_.forget(id);
      continue;
    }
    guarded(id, [this, &parked] {
      if (parked.state == State::idle) return readHead(std::move(parked));
      // The request itself finds that its body or its answer is late.
      if (parked.state != State::readingHead) return toServing(std::move(parked.connection), Moment::max());
      const bool mayBeWhole = !parked.connection->stream().handshaking() && hasInput(*parked.connection);
      const Connection::Ready ready = mayBeWhole ? parked.connection->receive() : Connection::Ready::no;
      if (ready == Connection::Ready::yes || ready == Connection::Ready::probe) {
        return serveHead(std::move(parked.connection), ready, parked.deadline);
      }
      const Connection::Next next = parked.connection->refuseLateHead();
      continueAfter(std::move(parked.connection), next);
    });
  }
}

void ConnectionReactor::toServing(std::unique_ptr<Connection>&& connection, Moment headDeadline) {
  if (!connections_.beginServing(*connection, headDeadline)) return;
  if (const auto refused = threads_.submit(std::move(connection))) connections_.forget(refused->id());
}

void ConnectionReactor::serve(std::unique_ptr<Connection> connection) {
  guarded(connection->id(), [this, &connection] {
    const Connection::Next next = connection->serve();
    continueAfter(std::move(connection), next);
  });
}

void ConnectionReactor::continueAfter(std::unique_ptr<Connection> connection, Connection::Next next) {
  const std::uint64_t id = connection->id();
  const Moment now = std::chrono::steady_clock::now();
  connection->releaseMemory();
  switch (next) {
    case Connection::Next::discardInput:
      return connections_.park({std::move(connection), State::lingeringClose, now + kLingeringCloseTimeout});
    case Connection::Next::park:
      if (connection->inHead())
        return connections_.park({std::move(connection), State::readingHead, now + kHeadTimeout});
      return connections_.park({std::move(connection), State::idle, now + rules_.keepAlive});
    case Connection::Next::resume: {
      const Moment headDeadline = connections_.headDeadline(id);
      return connections_.park({std::move(connection), State::readingHead, headDeadline});
    }
    case Connection::Next::awaitInput: {
      const Moment end = now + connection->timeLeft();
      return connections_.park({std::move(connection), State::awaitingInput, end});
    }
    case Connection::Next::awaitOutput: {
      const Moment end = now + connection->timeLeft();
      return connections_.park({std::move(connection), State::awaitingOutput, end});
    }
    case Connection::Next::needsThread: return toServing(std::move(connection), Moment::max());
    case Connection::Next::suspendUnwatched:
    case Connection::Next::suspend:
      connection = connections_.suspend(std::move(connection), next == Connection::Next::suspend);
      return connection == nullptr ? void() : toServing(std::move(connection), Moment::max());
    case Connection::Next::close: break;
  }
  connections_.forget(id);
}

}  // namespace jobq
