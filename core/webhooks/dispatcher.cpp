#include "core/webhooks/dispatcher.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace jobq {
namespace {

constexpr Millis kPassInterval{1'000};
constexpr Instant::duration kLongestPassPause = Millis(10'000);
constexpr Millis kPauseAfterFailedPass{500};
constexpr Millis kDelayWithoutThread{1'000};
constexpr std::size_t kHostsPerPage = 1'000;
/// Most deliveries of a claim, which is one step of the storage and delays the steps of others.
constexpr std::size_t kMostPerClaim = 64;

/// Removes up to kMostPerClaim places from `places` and returns them.
std::vector<HostPlaces> nextClaim(std::vector<HostPlaces>& places) {
  std::vector<HostPlaces> claim;
  for (std::size_t room = kMostPerClaim; room > 0 && !places.empty();) {
    HostPlaces& last = places.back();
    const std::size_t count = std::min(room, last.places);
    claim.push_back({last.host, count});
    room -= count;
    last.places -= count;
    if (last.places == 0) places.pop_back();
  }
  return claim;
}

}  // namespace

WebhookDispatcher::WebhookDispatcher(const DeliveryTask::Deps& deps, std::size_t places)
    : deps_(deps), pool_(*this, places) {}

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
  for (const DeliveryClaim& claim : pool_.stop()) reschedule(claim, Millis(0));
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

// Makes a round over all hosts, from the end of the last pass on. A round that claims a delivery is followed by another
// pass, after a pause that is as short as the round.
void WebhookDispatcher::runPass() {
  const std::string began = lastHost_;
  bool claimed = claimFrom(lastHost_);
  // No place is left, and the end of a delivery notifies the scheduler; or a stop was requested.
  if (!lastHost_.empty()) return;
  if (!began.empty() && claimFrom(lastHost_)) claimed = true;
  if (!lastHost_.empty()) return;
  if (claimed) return notify();
  // The round claimed no delivery, perhaps because unresponsive hosts of the first pages hold all places that such
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
    std::vector<HostPlaces> places = pool_.placesFor(page.hosts);
    if (!places.empty()) lastServedPage_ = page.next;
    while (!places.empty() && pool_.hasPlaces()) {  // the bodies of the last claim may take all bytes
      for (Delivery& delivery : deps_.outbox.claimDue(nextClaim(places), kDeliveryLease)) {
        any = true;
        startDelivery(std::move(delivery));
      }
    }
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

std::unique_ptr<DeliveryWork> WebhookDispatcher::workOn(Delivery delivery) {
  return std::make_unique<DeliveryTask>(deps_, std::move(delivery), stop_.get_token());
}

void WebhookDispatcher::placeFreed(std::optional<Instant> retryAt) noexcept {
  try {
    Lock lock(mutex_);
    if (retryAt) retries_.insert(*retryAt);
  } catch (const std::bad_alloc&) {
    // Without this entry the regular pass, once a second, finds the delivery.
  }
  notify();
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
