#include "core/webhooks/dispatcher.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <vector>

namespace jobq {
namespace {

constexpr Millis kLongestRest{1'000};
constexpr Millis kDeliveryRetry{500};
constexpr Millis kThreadRetry{1'000};
constexpr std::size_t kHostsOfAPage = 1'000;

}  // namespace

WebhookDispatcher::WebhookDispatcher(const DeliveryTask::Deps& deps)
    : deps_(deps), pool_([this](Delivery delivery) { return deliver(std::move(delivery)); }, [this] { notify(); }) {}

void WebhookDispatcher::start() {
  if (!scheduler_.joinable() && !stop_.stop_requested()) scheduler_ = std::thread([this] { loop(); });
}

void WebhookDispatcher::stop() {
  stop_.request_stop();
  {
    Lock lock(mutex_);
    wake_.notifyAll();
  }
  if (scheduler_.joinable()) scheduler_.join();
  for (const Delivery& delivery : pool_.stop()) reschedule(delivery.claim(), Millis(0));
}

void WebhookDispatcher::notify() noexcept {
  if (notified_.exchange(true)) return;
  Lock lock(mutex_);
  wake_.notifyAll();
}

void WebhookDispatcher::loop() {
  nameThread("courier-clerk");
  while (awaitNextPass()) {
    const Instant began = deps_.clock.now();
    nextPassAt_ = began + kLongestRest;
    try {
      runPass();
    } catch (const std::exception& error) {  // also of a storage that is out of memory: the next look may go better
      deps_.log.write(LogLevel::error, "courier.storage", error.what());
      nextPassAt_ = deps_.clock.now() + kDeliveryRetry;
    }
    // A look at very many hosts takes its time; rings must not keep a processor busy with looks.
    const Instant now = deps_.clock.now();
    pausedUntil_ = now + (now - began);
  }
}

// False: there is none. Whoever rings after this has its own look.
bool WebhookDispatcher::awaitNextPass() {
  Lock lock(mutex_);
  for (;;) {
    const Instant now = deps_.clock.now();
    const Instant next = retries_.empty() ? nextPassAt_ : std::min(nextPassAt_, *retries_.begin());
    if (stop_.stop_requested()) return false;
    if (pausedUntil_ <= now && (notified_ || next <= now)) {
      notified_ = false;
      retries_.erase(retries_.begin(), retries_.upper_bound(now));
      return true;
    }
    deps_.clock.waitUntil(mutex_, wake_, std::max(notified_ ? now : next, pausedUntil_));
  }
}

// Goes round all hosts, beginning where the last look ended, until one round has claimed nothing.
void WebhookDispatcher::runPass() {
  bool claimed = true;
  while (claimed) {
    const std::string began = lastHost_;
    claimed = claimFrom(lastHost_);
    if (!lastHost_.empty()) return;  // no places are left: the next delivery that ends rings
    if (!began.empty() && claimFrom(lastHost_)) claimed = true;
    if (!lastHost_.empty()) return;
  }
  // The places of hosts that do not answer may have run out alone: the next look begins behind those that had some.
  lastHost_ = served_;
}

// Claims what may begin of the hosts behind `after`. Leaves the last host in it when the places ran out, nothing when
// there are no more hosts. Returns whether something was claimed.
bool WebhookDispatcher::claimFrom(std::string& after) {
  bool any = false;
  do {
    if (stop_.stop_requested()) return false;
    if (!pool_.hasPlaces()) return any;
    DueHosts page = deps_.outbox.dueHosts(after, kHostsOfAPage);
    const std::vector<HostPlaces> places = pool_.placesFor(page.hosts);
    if (!places.empty()) {
      for (Delivery& delivery : deps_.outbox.claimDue(places, kDeliveryLease)) {
        any = true;
        startDelivery(std::move(delivery));
      }
    }
    if (!places.empty()) served_ = page.next;
    after = std::move(page.next);
  } while (!after.empty());
  return any;
}

void WebhookDispatcher::startDelivery(Delivery delivery) {
  const DeliveryClaim claim = delivery.claim();
  try {
    pool_.start(std::move(delivery));
  } catch (const std::exception& error) {  // no thread, or no memory
    deps_.log.write(LogLevel::error, "courier.thread", "delivery " + claim.id + " has to wait: " + error.what());
    reschedule(claim, kThreadRetry);
  }
}

CallEnd WebhookDispatcher::deliver(Delivery delivery) {
  DeliveryTask task(deps_, std::move(delivery), stop_.get_token());
  const auto again = task.run();
  if (!again) return task.callEnd();
  try {
    Lock lock(mutex_);
    retries_.insert(*again);
  } catch (const std::bad_alloc&) {
    // The look of the next second finds it.
  }
  return task.callEnd();
}

// Best effort: when it fails, the lease ends in a minute.
void WebhookDispatcher::reschedule(const DeliveryClaim& claim, Millis delay) noexcept {
  try {
    deps_.outbox.reschedule(claim, delay);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::warning, "courier.giveBack", error.what());
  }
}

}  // namespace jobq
