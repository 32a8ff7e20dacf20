#include "core/http/transport/acceptor.h"

#include <Poco/Net/SocketAddress.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/process/descriptors.h"
#include "jobq/machine_fault.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;

constexpr int kMostAttempts = 256;  // failed or refused attempts in one call of next()
constexpr milliseconds kAcceptPause{100};
constexpr milliseconds kWarningPause{60'000};

std::string addressText(const sockaddr_storage& peer, socklen_t size) {
  return Poco::Net::SocketAddress(reinterpret_cast<const sockaddr*>(&peer), size).host().toString();
}

const char* remedyFor(int error) {
  switch (error) {
    case EMFILE: return "raise ulimit -n";
    case ENFILE: return "raise the kernel's fs.file-max";
    default: return "free memory of the machine";
  }
}

}  // namespace

Acceptor::~Acceptor() { ::close(listener_); }

void Acceptor::watchWith(int epoll, std::uint64_t id) noexcept {
  epoll_ = epoll;
  id_ = id;
  epoll_event event{EPOLLIN, {}};
  event.data.u64 = id_;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
}

void Acceptor::unwatch() noexcept { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_, nullptr); }

// Closes the descriptor and throws if memory for the place is missing.
std::optional<AddressPlaces::Place> Acceptor::reservePlace(int descriptor, const sockaddr_storage& peer) {
  try {
    return places_.reserve(peer);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
}

// The system gives out the lowest free number: the number of a new descriptor tells how many are in use.
bool Acceptor::hasRoom() noexcept {
  if (!isFull_) return true;
  const int lowest = ::fcntl(listener_, F_DUPFD_CLOEXEC, 0);
  if (lowest < 0) return false;
  ::close(lowest);
  isFull_ = static_cast<std::uint64_t>(lowest) >= descriptorsForConnections();
  return !isFull_;
}

std::optional<Acceptor::Accepted> Acceptor::next() {
  if (!hasRoom()) {
    pause(EMFILE);
    return std::nullopt;
  }
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int descriptor = ::accept4(listener_, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC);
    if (descriptor >= 0) {
      isFull_ = static_cast<std::uint64_t>(descriptor) + 1 >= descriptorsForConnections();
      auto place = reservePlace(descriptor, peer);
      if (place) return Accepted{descriptor, std::move(*place)};
      ::close(descriptor);
      warn(lastAddressWarning_, "http.addressLimit",
           addressText(peer, size) +
               " has as many connections as server.connectionsPerAddress allows: further connections from the "
               "address are closed");
      continue;
    }
    // After refuse() the error is EINVAL. Other errors, such as ECONNABORTED or EINTR, concern one attempt: the next
    // one may succeed.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINVAL) return std::nullopt;
    if (isMachineFault(errno)) {
      pause(errno);
      return std::nullopt;
    }
  }
  return std::nullopt;  // epoll reports the rest again
}

// epoll would report the waiting clients again and again, so the listener is unwatched for kAcceptPause.
void Acceptor::pause(int error) {
  warn(lastPauseWarning_, "http.acceptPaused",
       std::string("no connection can be accepted: ") + std::strerror(error) + "; " + remedyFor(error));
  unwatch();
  retryAt_ = std::chrono::steady_clock::now() + kAcceptPause;
}

void Acceptor::retry(Moment now) noexcept {
  if (!retryAt_ || now < *retryAt_) return;
  retryAt_.reset();
  watchWith(epoll_, id_);
}

void Acceptor::refuse() noexcept {
  // shutdown() is allowed from any thread, close() is not.
  ::shutdown(listener_, SHUT_RDWR);
}

void Acceptor::warn(std::optional<Moment>& last, const char* event, const std::string& sentence) {
  const Moment now = std::chrono::steady_clock::now();
  if (last && now < *last + kWarningPause) return;
  last = now;
  log_.write(LogLevel::warning, event, sentence);
}

}  // namespace jobq
