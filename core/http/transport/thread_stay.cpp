#include "core/http/transport/thread_stay.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace jobq {
namespace {

/// Wakes a thread out of poll(). Without a descriptor a stay lasts until the next bytes or for its whole time.
struct EventDescriptor {
  EventDescriptor() : descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~EventDescriptor() {
    if (descriptor >= 0) ::close(descriptor);
  }
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  const int descriptor;
};

int wakeupOfThisThread() {
  thread_local const EventDescriptor kEvent;
  return kEvent.descriptor;
}

void signal(int wakeup) noexcept {
  const std::uint64_t one = 1;
  if (wakeup >= 0) (void)!::write(wakeup, &one, sizeof one);
}

void clear(int wakeup) noexcept {
  std::uint64_t count = 0;
  (void)!::read(wakeup, &count, sizeof count);
}

}  // namespace

void ThreadStay::begin() {
  Lock lock(mutex_);
  state_ = State::staying;
  wakeup_ = wakeupOfThisThread();
}

bool ThreadStay::await(int descriptor, std::chrono::milliseconds atMost) noexcept {
  const int wakeup = wakeupOfThisThread();
  pollfd events[] = {{descriptor, POLLIN | POLLRDHUP, 0}, {wakeup, POLLIN, 0}};  // poll() skips a negative descriptor
  const auto end = std::chrono::steady_clock::now() + atMost;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    const int ready = ::poll(events, 2, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) break;
  }
  if (events[1].revents == 0) return false;
  clear(wakeup);
  return true;
}

bool ThreadStay::end() {
  Lock lock(mutex_);
  while (state_ == State::borrowed) returned_.wait(mutex_);
  return std::exchange(state_, State::none) == State::returned;
}

bool ThreadStay::borrow() {
  Lock lock(mutex_);
  if (state_ != State::staying) return false;
  state_ = State::borrowed;
  return true;
}

// Notified and signalled under the lock: the staying thread may destroy the object as soon as it sees the end.
void ThreadStay::endLoan(bool wakes) {
  Lock lock(mutex_);
  state_ = State::returned;
  returned_.notifyOne();
  if (wakes) signal(wakeup_);
}

void ThreadStay::wake() {
  Lock lock(mutex_);
  if (state_ != State::none) signal(wakeup_);
}

}  // namespace jobq
