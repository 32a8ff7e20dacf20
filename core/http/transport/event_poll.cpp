#include "core/http/transport/event_poll.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "core/http/transport/connection.h"
#include "jobq/error.h"

namespace jobq {

EventPoll::EventPoll() noexcept
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

EventPoll::~EventPoll() {
  ::close(epoll_);
  ::close(wakeup_);
}

void EventPoll::start() {
  if (epoll_ < 0 || wakeup_ < 0) throw Error("the system gives no descriptors for epoll: raise ulimit -n");
  epoll_event event{EPOLLIN, {}};
  event.data.u64 = kWakeup;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event);
}

bool EventPoll::add(const Connection& connection) const noexcept {
  epoll_event event{EPOLLONESHOT, {}};
  event.data.u64 = connection.id();
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.stream().descriptor(), &event) == 0;
}

void EventPoll::arm(const Connection& connection, std::uint32_t events) const noexcept {
  epoll_event event{events | EPOLLONESHOT, {}};
  event.data.u64 = connection.id();
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.stream().descriptor(), &event);
}

std::span<const epoll_event> EventPoll::wait(int milliseconds) noexcept {
  const int count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), milliseconds);
  return {events_.data(), static_cast<std::size_t>(std::max(count, 0))};
}

void EventPoll::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wakeup_, &one, sizeof one);
}

void EventPoll::clearWakeup() const noexcept {
  std::uint64_t times = 0;
  (void)!::read(wakeup_, &times, sizeof times);
}

}  // namespace jobq
