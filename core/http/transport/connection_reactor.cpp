#include "core/http/transport/connection_reactor.h"

#include <Poco/Exception.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <exception>
#include <utility>

namespace jobq {
namespace {

using std::chrono::milliseconds;
using Stay = ParkedConnection::Stay;

constexpr milliseconds kHeadTime{10'000};
constexpr milliseconds kLeavingTime{2'000};
constexpr std::size_t kDropBytes = 256UL << 20;
constexpr std::size_t kScrap = 256UL << 10;
constexpr int kDropReads = 16;  // reads in a row, so that a flooding client delays the others only briefly
constexpr int kAccepts = 256;

/// Slots for clients who read slowly, out of the threads kept for calls that never wait.
constexpr std::uint64_t kReaders = 128;

/// Bytes that all heads together may hold beyond ReadBuffer::kFree each.
constexpr std::uint64_t kHeadMemory = 64UL << 20;

/// Approximate memory of a connection that has sent a part of its head, without and with TLS.
constexpr std::uint64_t kPlainConnection = 8UL << 10;
constexpr std::uint64_t kTlsConnection = 32UL << 10;

// Data of an epoll event: this value, EventPoll::kWakeup, or the id of a connection.
constexpr std::uint64_t kListener = 0;

}  // namespace

ConnectionReactor::ConnectionReactor(int listener, const Rules& rules, Log& log)
    : rules_(rules),
      log_(log),
      acceptor_(listener, rules.perAddress, log),
      readers_(kReaders),
      heads_(kHeadMemory),
      connections_(poll_),
      threads_(rules.threads, *this),
      server_{rules_.handlers, rules_.params, rules_.waiting, readers_,
              heads_,          connections_,  closing_,       threads_.mostBusy()},
      lastId_(EventPoll::kWakeup),
      scrap_(new char[kScrap]) {}

ConnectionReactor::~ConnectionReactor() {
  stop();
  connections_.closeUnserved();  // before the members that the connections refer to
}

void ConnectionReactor::start() {
  if (thread_.joinable()) return;
  poll_.start();
  acceptor_.watchWith(poll_.descriptor(), kListener);
  thread_ = std::thread([this] { loop(); });
}

void ConnectionReactor::drain() {
  announceClose();
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
  poll_.wake();
  if (thread_.joinable()) thread_.join();
}

void ConnectionReactor::loop() {
  nameThread("reactor");
  for (;;) {
    const int wait = connections_.untilNextDeadline(acceptor_.retryAt(), std::chrono::steady_clock::now());
    for (const epoll_event& event : poll_.wait(wait)) {
      const std::uint64_t id = event.data.u64;
      if (id == kListener) {
        acceptAll();
      } else if (id == EventPoll::kWakeup) {
        poll_.clearWakeup();
      } else {
        handleEvent(id);
      }
    }
    if (connections_.draining()) connections_.closeUnserved();
    endLate();
    returnFreedMemory();
    if (connections_.stopping()) return;
  }
}

void ConnectionReactor::acceptAll() {
  if (connections_.draining()) return acceptor_.unwatch();
  for (int i = 0; i < kAccepts; ++i) {
    try {
      auto accepted = acceptor_.next();
      if (!accepted) return;
      admit(std::move(*accepted));
    } catch (const std::exception& error) {
      log_.write(LogLevel::error, "http.connection", error.what());
    }
  }
}

void ConnectionReactor::admit(Acceptor::Accepted accepted) {
  const int descriptor = accepted.descriptor;
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::unique_ptr<ByteStream> stream = rules_.tls != nullptr ? rules_.tls->stream(descriptor) : plainStream(descriptor);
  auto connection = std::make_unique<Connection>(++lastId_, std::move(stream), server_, std::move(accepted.place));
  // The connection stays registered with epoll for its whole life; events are requested later.
  if (!poll_.add(*connection)) return;
  connections_.park({std::move(connection), Stay::idle, std::chrono::steady_clock::now() + rules_.keepAlive});
}

void ConnectionReactor::returnFreedMemory() {
  const std::uint64_t each = rules_.tls != nullptr ? kTlsConnection : kPlainConnection;
  freed_.note(kHeadMemory - heads_.left() + each * acceptor_.connections());
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
    auto parked = connections_.takeReady(id);
    if (!parked) return;
    if (parked->stay == Stay::leaving) {
      dropInput(std::move(*parked));
    } else {
      readHead(std::move(*parked));
    }
  });
}

void ConnectionReactor::readHead(ParkedConnection parked) {
  const Moment headEnd = parked.stay == Stay::head ? parked.deadline : std::chrono::steady_clock::now() + kHeadTime;
  // A handshake takes a millisecond of processor time, which would delay all other connections on this thread.
  if (parked.connection->handshaking()) return toServing(std::move(parked.connection), headEnd);
  switch (parked.connection->receive()) {
    case Connection::Ready::gone: return connections_.forget(parked.connection->id());
    case Connection::Ready::yes: return toServing(std::move(parked.connection), headEnd);
    case Connection::Ready::no: break;
  }
  if (parked.stay == Stay::idle && parked.connection->inHead()) {
    parked.stay = Stay::head;
    parked.deadline = headEnd;
  }
  connections_.park(std::move(parked));
}

void ConnectionReactor::dropInput(ParkedConnection parked) {
  for (int i = 0; i < kDropReads && parked.dropped < kDropBytes; ++i) {
    const auto got = parked.connection->stream().drop(scrap_.get(), kScrap);
    if (!got) return connections_.park(std::move(parked));
    if (*got == 0) break;
    parked.dropped += *got;
    if (i + 1 == kDropReads) return connections_.park(std::move(parked));
  }
  connections_.forget(parked.connection->id());
}

void ConnectionReactor::endLate() {
  const Moment now = std::chrono::steady_clock::now();
  acceptor_.retry(now);
  for (ParkedConnection& parked : connections_.takeLate(now)) {
    const std::uint64_t id = parked.connection->id();
    if (parked.stay != Stay::head) {
      connections_.forget(id);
      continue;
    }
    guarded(id, [this, &parked] {
      const Connection::Next next = parked.connection->refuseLateHead();
      continueAfter(std::move(parked.connection), next);
    });
  }
}

void ConnectionReactor::toServing(std::unique_ptr<Connection> connection, Moment headEnd) {
  if (!connections_.beginServing(*connection, headEnd)) return;
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
      return connections_.park({std::move(connection), Stay::leaving, now + kLeavingTime});
    case Connection::Next::park:
      if (connection->inHead()) return connections_.park({std::move(connection), Stay::head, now + kHeadTime});
      return connections_.park({std::move(connection), Stay::idle, now + rules_.keepAlive});
    case Connection::Next::resume: {
      const Moment headEnd = connections_.headEnd(id);
      return connections_.park({std::move(connection), Stay::head, headEnd});
    }
    case Connection::Next::close: break;
  }
  connections_.forget(id);
}

}  // namespace jobq
