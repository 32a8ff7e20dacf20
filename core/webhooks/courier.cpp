#include "core/webhooks/courier.h"

#include <algorithm>
#include <exception>
#include <new>

namespace jobq {
namespace {

constexpr Millis kLongestRest{1'000};
constexpr Millis kDeliveryRetry{500};
constexpr Millis kThreadRetry{1'000};

}  // namespace

Courier::Courier(const Errand::Rooms& rooms)
    : rooms_(rooms), crew_([this](Delivery delivery) { attend(std::move(delivery)); }, [this] { ring(); }) {}

void Courier::start() {
  if (!scheduler_.joinable() && !stop_.stop_requested()) scheduler_ = std::thread([this] { loop(); });
}

void Courier::stop() {
  stop_.request_stop();
  {
    Lock lock(mutex_);
    rung_.notifyAll();
  }
  if (scheduler_.joinable()) scheduler_.join();
  for (const Delivery& delivery : crew_.stop()) giveBack(delivery.id, Millis(0));
}

void Courier::ring() noexcept {
  if (rings_.exchange(true)) return;
  Lock lock(mutex_);
  rung_.notifyAll();
}

void Courier::loop() {
  nameThread("courier-clerk");
  while (awaitNextLook()) {
    looksAt_ = rooms_.clock.now() + kLongestRest;
    try {
      look();
    } catch (const std::exception& error) {  // also of a storage that is out of memory: the next look may go better
      rooms_.log.write(LogLevel::error, "courier.storage", error.what());
      looksAt_ = rooms_.clock.now() + kDeliveryRetry;
    }
  }
}

// False: there is none. Whoever rings after this has its own look.
bool Courier::awaitNextLook() {
  Lock lock(mutex_);
  for (;;) {
    const Instant now = rooms_.clock.now();
    const Instant next = retries_.empty() ? looksAt_ : std::min(looksAt_, *retries_.begin());
    if (stop_.stop_requested()) return false;
    if (rings_ || next <= now) {
      rings_ = false;
      retries_.erase(retries_.begin(), retries_.upper_bound(now));
      return true;
    }
    rooms_.clock.waitUntil(mutex_, rung_, next);
  }
}

void Courier::look() {
  while (!stop_.stop_requested()) {
    const CourierCrew::Room room = crew_.room();
    if (room.deliveries == 0) return;  // the next that is done rings
    std::vector<Delivery> claimed = rooms_.outbox.claimDue(room.deliveries, kDeliveryLease, room.busyHosts);
    const bool all = claimed.empty();  // fewer than asked for says nothing: they may be large
    for (Delivery& delivery : claimed) hand(std::move(delivery));
    if (all) return;
  }
}

void Courier::hand(Delivery delivery) {
  const std::string id = delivery.id;
  try {
    crew_.give(std::move(delivery));
  } catch (const std::exception& error) {  // no thread, or no memory
    rooms_.log.write(LogLevel::error, "courier.thread", "delivery " + id + " has to wait: " + error.what());
    giveBack(id, kThreadRetry);
  }
}

void Courier::attend(Delivery delivery) {
  Errand errand(rooms_, std::move(delivery), stop_.get_token());
  const auto again = errand.run();
  if (!again) return;
  try {
    Lock lock(mutex_);
    retries_.insert(*again);
  } catch (const std::bad_alloc&) {
    // The look of the next second finds it.
  }
}

// Best effort: when it fails, the lease ends in a minute.
void Courier::giveBack(const std::string& delivery, Millis delay) noexcept {
  try {
    rooms_.outbox.reschedule(delivery, delay);
  } catch (const std::exception& error) {
    rooms_.log.write(LogLevel::warning, "courier.giveBack", error.what());
  }
}

}  // namespace jobq
