#include "core/webhooks/dispatcher.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <vector>

namespace jobq {
namespace {

constexpr Millis kPassInterval{1'000};
constexpr Instant::duration kLongestPassPause = Millis(10'000);
constexpr Millis kPauseAfterFailedPass{500};
constexpr Millis kDelayWithoutThread{1'000};
constexpr std::size_t kHostsPerPage = 1'000;

}  // namespace

WebhookDispatcher::WebhookDispatcher(const DeliveryTask::Deps& deps) : deps_(deps), pool_(*this) {}

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
  nameThread("webhook-sched");
  while (awaitNextPass()) {
    const Instant began = deps_.clock.now();
    nextPassAt_ = began + kPassInterval;
    try {
      runPass();
    } catch (const std::exception& error) {  // also a storage without memory: the next pass may succeed
      deps_.log.write(LogLevel::error, "webhook.dispatch", error.what());
      nextPassAt_ = deps_.clock.now() + kPauseAfterFailedPass;
    }
    // A pass over very many hosts takes time. A pause as long as the pass follows, so the scheduler uses at most half
    // of a processor, however often it is notified. The bound exists because a suspended process or a blocked storage
    // makes a pass look very long.
    const Instant now = deps_.clock.now();
    pausedUntil_ = now + std::min(now - began, kLongestPassPause);
  }
}

// Blocks until a pass is due; returns false on shutdown. A notification after this call causes another pass.
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

// Repeats rounds over all hosts, from the end of the last pass on, until a round claims no delivery or no place is
// free.
void WebhookDispatcher::runPass() {
  bool claimed = true;
  while (claimed) {
    const std::string began = lastHost_;
    claimed = claimFrom(lastHost_);
    // No place is left, and the end of a delivery notifies the scheduler; or a stop was requested.
    if (!lastHost_.empty()) return;
    if (!began.empty() && claimFrom(lastHost_)) claimed = true;
    if (!lastHost_.empty()) return;
  }
  // The last round claimed no delivery, perhaps because unresponsive hosts of the first pages hold all places that such
  // hosts may have. The next pass begins behind the last page that received places, so that later hosts get their turn.
  lastHost_ = lastServedPage_;
}

// Claims the deliveries that may start, of the hosts behind `after`. Sets `after` to the end of the last page read if
// the places ran out, or to an empty string if the list of hosts was read to its end. Returns whether a delivery was
// claimed, and false after a stop request.
bool WebhookDispatcher::claimFrom(std::string& after) {
  bool any = false;
  do {
    if (stop_.stop_requested()) return false;
    if (!pool_.hasPlaces()) return any;
    DueHosts page = deps_.outbox.dueHosts(after, kHostsPerPage);
    const std::vector<HostPlaces> places = pool_.placesFor(page.hosts);
    if (!places.empty()) {
      for (Delivery& delivery : deps_.outbox.claimDue(places, kDeliveryLease)) {
        any = true;
        startDelivery(std::move(delivery));
      }
    }
    if (!places.empty()) lastServedPage_ = page.next;
    after = std::move(page.next);
  } while (!after.empty());
  return any;
}

void WebhookDispatcher::startDelivery(Delivery delivery) {
  const DeliveryClaim claim = delivery.claim();
  try {
    pool_.start(std::move(delivery));
  } catch (const std::exception& error) {  // no thread, or no memory
    deps_.log.write(LogLevel::error, "webhook.thread", "delivery " + claim.id + " has to wait: " + error.what());
    reschedule(claim, kDelayWithoutThread);
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
    // Without this entry the regular pass, once a second, finds the delivery.
  }
  return task.callEnd();
}

// Best effort: after a failure the lease ends within a minute.
void WebhookDispatcher::reschedule(const DeliveryClaim& claim, Millis delay) noexcept {
  try {
    deps_.outbox.reschedule(claim, delay);
  } catch (const std::exception& error) {
    deps_.log.write(LogLevel::warning, "webhook.reschedule", error.what());
  }
}

}  // namespace jobq
