#include "core/handler_process/child_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace jobq::worker {
namespace {

constexpr std::size_t kReadBytes = 256UL << 10;
constexpr Millis kLongestPoll{60'000};

// Returns the milliseconds for poll(), -1 for no end.
int timeUntil(Instant latest, Instant now) {
  if (latest == Instant::max()) return -1;
  return static_cast<int>(std::clamp(latest - now, Millis(0), kLongestPoll).count());
}

}  // namespace

bool ChildLink::isIdle() const {
  std::array<pollfd, 2> waits{{{process_.socket(), POLLIN, 0}, {process_.ended(), POLLIN, 0}}};
  return reader_.isEmpty() && ::poll(waits.data(), waits.size(), 0) == 0;
}

// A process that sends without a pause does not keep the thread from a stop or from the end of the grace.
ChildLink::Event ChildLink::await(const WakeDescriptor& wake, Instant latest) {
  for (;;) {
    const Instant now = clock_.now();
    if (now >= latest) return Event::late;
    if (auto message = reader_.next()) {
      message_ = *std::move(message);
      return Event::message;
    }
    if (unsentBytes() > 0 && !send()) return Event::ended;
    const auto socketEvents = static_cast<short>(POLLIN | (unsentBytes() > 0 ? POLLOUT : 0));
    std::array<pollfd, 3> waits{
        {{process_.socket(), socketEvents, 0}, {wake.number(), POLLIN, 0}, {process_.ended(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), timeUntil(latest, now)) < 0) continue;  // EINTR
    const auto& [socket, woken, ended] = waits;
    if (woken.revents != 0) return Event::woken;
    if ((socket.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      if (!receive()) return Event::ended;
    } else if (ended.revents != 0) {
      return Event::ended;
    }
  }
}

bool ChildLink::receive() {
  room_.resize(kReadBytes);
  const ssize_t got = ::recv(process_.socket(), room_.data(), room_.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  reader_.add(std::string_view(room_).substr(0, static_cast<std::size_t>(got)));
  return got > 0;
}

bool ChildLink::send() {
  const std::string_view rest = std::string_view(unsent_).substr(sent_);
  const ssize_t done = ::send(process_.socket(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (done < 0) return errno == EINTR || errno == EAGAIN;
  sent_ += static_cast<std::size_t>(done);
  if (unsentBytes() > 0) return true;
  std::string().swap(unsent_);
  sent_ = 0;
  return true;
}

}  // namespace jobq::worker
