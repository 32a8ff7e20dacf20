#include "core/workers/remote/remote_link.h"

#include <utility>

namespace jobq {
namespace {

/// The connections of a process end together; news of an end at another node comes some seconds later.
constexpr Millis kTogether{8'000};

}  // namespace

void RemoteLink::noteOpened() noexcept {
  ++here_;
  tornAt_.reset();
  endedHere_.reset();
  if (state_ != State::exited) state_ = State::open;
}

bool RemoteLink::noteEnded(ConnectionEnd end, Instant now) noexcept {
  if (here_ == 0) return false;
  if (end == ConnectionEnd::torn) tornAt_ = now;
  if (--here_ > 0) return false;
  if (end == ConnectionEnd::inOrder) endedHere_ = now;
  follow(now);
  return true;
}

void RemoteLink::noteElsewhere(bool isOpen, bool isTorn, Instant now) noexcept {
  if (isTorn && !isTornElsewhere_) tornAt_ = now;
  isTornElsewhere_ = isTorn;
  isOpenElsewhere_ = isOpen;
  follow(now);
}

void RemoteLink::follow(Instant now) noexcept {
  if (state_ == State::exited) return;
  if (here_ > 0 || isOpenElsewhere_) {
    state_ = State::open;
    return;
  }
  if (state_ == State::open) {
    state_ = State::ended;
    endedAt_ = now;
  }
  const bool isTorn = tornAt_ && *tornAt_ <= endedAt_ + kTogether && endedAt_ <= *tornAt_ + kTogether;
  if (state_ == State::ended && isTorn) state_ = State::torn;
}

bool RemoteLink::wasOpenHere(Millis time, Instant now) const noexcept {
  return here_ > 0 || (state_ != State::torn && endedHere_ && now < *endedHere_ + time);
}

bool RemoteLink::hasLost(Instant listedAt, Instant now) const noexcept {
  switch (state_) {
    case State::open: return false;
    case State::exited: return here_ == 0;
    case State::torn: return now >= endedAt_ + kUnseen;
    case State::unseen:
    case State::ended: break;
  }
  return now >= endedAt_ + kUnseen && now >= listedAt + kTwoMissedPings;
}

}  // namespace jobq
