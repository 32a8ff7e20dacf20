#include "core/http/transport/connection_reactor.h"

#include <Poco/Exception.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <vector>

#include "jobq/error.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;

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

// Data of an epoll event: one of these two values, or the id of a connection.
constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kWakeup = 1;

constexpr std::uint32_t kReadable = EPOLLIN | EPOLLRDHUP;

}  // namespace

ConnectionReactor::ConnectionReactor(int listener, const Rules& rules, Log& log)
    : rules_(rules),
      log_(log),
      acceptor_(listener, rules.perAddress, log),
      readers_(kReaders),
      heads_(kHeadMemory),
      threads_(rules.threads, [this](std::unique_ptr<Connection> connection) { serve(std::move(connection)); }),
      server_{rules_.handlers, rules_.params, rules_.waiting, readers_, heads_, *this, parting_, threads_.crowded()},
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      lastId_(kWakeup),
      scrap_(new char[kScrap]) {}

ConnectionReactor::~ConnectionReactor() {
  stop();
  parked_.clear();
  ::close(epoll_);
  ::close(wakeup_);
}

void ConnectionReactor::start() {
  if (thread_.joinable()) return;
  if (epoll_ < 0 || wakeup_ < 0) throw Error("the system gives no descriptors for epoll: raise ulimit -n");
  acceptor_.watchWith(epoll_, kListener);
  epoll_event event{EPOLLIN, {}};
  event.data.u64 = kWakeup;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event);
  thread_ = std::thread([this] { loop(); });
}

void ConnectionReactor::drain() {
  announceClose();
  {
    Lock lock(mutex_);
    draining_ = true;
  }
  acceptor_.refuse();
  wake();
}

bool ConnectionReactor::awaitQuiet(milliseconds atMost) {
  const auto end = std::chrono::steady_clock::now() + atMost;
  Lock lock(mutex_);
  while (!serving_.empty() || !parked_.empty()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= end) return false;
    quiet_.waitFor(mutex_, end - now);
  }
  return true;
}

void ConnectionReactor::stop() {
  drain();
  {
    Lock lock(mutex_);
    stopping_ = true;
  }
  // The queued connections end here, so serving_ must forget them before they are destroyed.
  const auto dropped = threads_.close();
  {
    Lock lock(mutex_);
    for (const auto& connection : dropped) serving_.erase(connection->id());
    for (const auto& [id, serving] : serving_) serving.connection->stream().shutDown();
  }
  threads_.stop();
  wake();
  if (thread_.joinable()) thread_.join();
}

void ConnectionReactor::loop() {
  nameThread("reactor");
  std::array<epoll_event, 256> events{};
  for (;;) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), untilNextDeadline());
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == kListener) {
        acceptAll();
      } else if (id == kWakeup) {
        std::uint64_t times = 0;
        (void)!::read(wakeup_, &times, sizeof times);
      } else {
        handleEvent(id);
      }
    }
    if (draining_) closeUnserved();
    endLate();
    returnFreedMemory();
    Lock lock(mutex_);
    if (stopping_) return;
  }
}

// Returns the milliseconds until the next deadline, or -1 without any deadline.
int ConnectionReactor::untilNextDeadline() {
  Lock lock(mutex_);
  wakesAt_ = deadlines_.empty() ? Moment::max() : deadlines_.begin()->first;
  if (const auto retry = acceptor_.retryAt()) wakesAt_ = std::min(wakesAt_, *retry);
  if (stopping_) return 0;
  if (wakesAt_ == Moment::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(wakesAt_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void ConnectionReactor::acceptAll() {
  if (draining_) return acceptor_.unwatch();
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
  epoll_event event{EPOLLONESHOT, {}};
  event.data.u64 = connection->id();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) return;
  parkConnection({std::move(connection), Stay::idle, std::chrono::steady_clock::now() + rules_.keepAlive});
}

void ConnectionReactor::returnFreedMemory() {
  const std::uint64_t each = rules_.tls != nullptr ? kTlsConnection : kPlainConnection;
  freed_.note(kHeadMemory - heads_.left() + each * acceptor_.connections());
}

void ConnectionReactor::handleEvent(std::uint64_t id) {
  std::stop_source gone{std::nostopstate};
  std::optional<Parked> parked;
  {
    Lock lock(mutex_);
    if (const auto watched = watched_.find(id); watched != watched_.end()) {
      gone = watched->second;
    } else {
      parked = unpark(id);
    }
  }
  // Called without the lock, because a waiting caller wakes inside this call.
  gone.request_stop();
  if (!parked) return;
  if (parked->stay == Stay::leaving) {
    dropInput(std::move(*parked));
  } else {
    readHead(std::move(*parked));
  }
}

void ConnectionReactor::readHead(Parked parked) {
  const Moment headEnd = parked.stay == Stay::head ? parked.deadline : std::chrono::steady_clock::now() + kHeadTime;
  // A handshake takes a millisecond of processor time, which would delay all other connections on this thread.
  if (parked.connection->handshaking()) return toServing(std::move(parked.connection), headEnd);
  switch (parked.connection->receive()) {
    case Connection::Ready::gone: return;
    case Connection::Ready::yes: return toServing(std::move(parked.connection), headEnd);
    case Connection::Ready::no: break;
  }
  if (parked.stay == Stay::idle && parked.connection->inHead()) {
    parked.stay = Stay::head;
    parked.deadline = headEnd;
  }
  parkConnection(std::move(parked));
}

void ConnectionReactor::dropInput(Parked parked) {
  for (int i = 0; i < kDropReads && parked.dropped < kDropBytes; ++i) {
    const auto got = parked.connection->stream().drop(scrap_.get(), kScrap);
    if (!got) return parkConnection(std::move(parked));
    if (*got == 0) break;
    parked.dropped += *got;
    if (i + 1 == kDropReads) return parkConnection(std::move(parked));
  }
  Lock lock(mutex_);
  if (serving_.empty() && parked_.empty()) quiet_.notifyAll();
}

void ConnectionReactor::endLate() {
  const Moment now = std::chrono::steady_clock::now();
  acceptor_.retry(now);
  std::vector<Parked> late;
  {
    Lock lock(mutex_);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(std::move(*unpark(deadlines_.begin()->second)));
    }
    if (serving_.empty() && parked_.empty()) quiet_.notifyAll();
  }
  for (Parked& parked : late) {
    if (parked.stay != Stay::head) continue;
    const Connection::Next next = parked.connection->refuseLateHead();
    continueAfter(std::move(parked.connection), next);
  }
}

// Closes the connections without a request at a shutdown.
void ConnectionReactor::closeUnserved() {
  std::vector<Parked> going;
  Lock lock(mutex_);
  for (auto at = parked_.begin(); at != parked_.end();) {
    const std::uint64_t id = (at++)->first;
    if (stopping_ || parked_.at(id).stay != Stay::leaving) going.push_back(std::move(*unpark(id)));
  }
  if (serving_.empty() && parked_.empty()) quiet_.notifyAll();
}

void ConnectionReactor::toServing(std::unique_ptr<Connection> connection, Moment headEnd) {
  {
    Lock lock(mutex_);
    if (stopping_) return;
    serving_.emplace(connection->id(), Serving{connection.get(), headEnd});
  }
  if (const auto refused = threads_.submit(std::move(connection))) {
    Lock lock(mutex_);
    serving_.erase(refused->id());
  }
}

std::size_t ConnectionReactor::serving() {
  Lock lock(mutex_);
  return serving_.size();
}

void ConnectionReactor::serve(std::unique_ptr<Connection> connection) {
  Connection::Next next = Connection::Next::close;
  try {
    next = connection->serve();
  } catch (const Poco::Exception& error) {
    log_.write(LogLevel::error, "http.connection", error.displayText());
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, "http.connection", error.what());
  }
  continueAfter(std::move(connection), next);
}

void ConnectionReactor::continueAfter(std::unique_ptr<Connection> connection, Connection::Next next) {
  const std::uint64_t id = connection->id();
  const Moment now = std::chrono::steady_clock::now();
  connection->releaseMemory();
  switch (next) {
    case Connection::Next::drain: return parkConnection({std::move(connection), Stay::leaving, now + kLeavingTime});
    case Connection::Next::park:
      if (connection->inHead()) return parkConnection({std::move(connection), Stay::head, now + kHeadTime});
      return parkConnection({std::move(connection), Stay::idle, now + rules_.keepAlive});
    case Connection::Next::resume: {
      Lock lock(mutex_);
      const Moment headEnd = serving_.at(id).headEnd;
      lock.unlock();
      return parkConnection({std::move(connection), Stay::head, headEnd});
    }
    case Connection::Next::close: break;
  }
  Lock lock(mutex_);
  serving_.erase(id);
  if (draining_ && serving_.empty() && parked_.empty()) quiet_.notifyAll();
}

// The reactor thread may unpark the connection as soon as it is armed, so no code touches the connection afterwards.
void ConnectionReactor::parkConnection(Parked parked) {
  bool sooner = false;
  {
    Lock lock(mutex_);
    const std::uint64_t id = parked.connection->id();
    serving_.erase(id);
    const bool welcome = !stopping_ && (!draining_ || parked.stay == Stay::leaving);
    if (welcome) {
      sooner = parked.deadline < wakesAt_;
      const Connection& connection = *parked.connection;
      deadlines_.emplace(parked.deadline, id);
      parked_.emplace(id, std::move(parked));
      arm(connection, kReadable);
    } else if (serving_.empty() && parked_.empty()) {
      quiet_.notifyAll();
    }
  }
  if (sooner) wake();
}

std::optional<ConnectionReactor::Parked> ConnectionReactor::unpark(std::uint64_t id) {
  const auto found = parked_.find(id);
  if (found == parked_.end()) return std::nullopt;
  std::optional<Parked> parked(std::move(found->second));
  deadlines_.erase({parked->deadline, id});
  parked_.erase(found);
  return parked;
}

std::stop_token ConnectionReactor::watch(std::uint64_t connection) {
  Lock lock(mutex_);
  const std::stop_token token = watched_[connection].get_token();
  arm(*serving_.at(connection).connection, EPOLLRDHUP);
  return token;
}

void ConnectionReactor::unwatch(std::uint64_t connection) noexcept {
  Lock lock(mutex_);
  watched_.erase(connection);
  // epoll cannot be asked for no events at all; a broken connection is reported at most once more.
  arm(*serving_.at(connection).connection, 0);
}

void ConnectionReactor::arm(const Connection& connection, std::uint32_t events) const noexcept {
  epoll_event event{events | EPOLLONESHOT, {}};
  event.data.u64 = connection.id();
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.descriptor(), &event);
}

void ConnectionReactor::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_, &one, sizeof one);
}

}  // namespace jobq
