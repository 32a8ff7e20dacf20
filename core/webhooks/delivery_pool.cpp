#include "core/webhooks/delivery_pool.h"

#include <exception>
#include <utility>

#include "core/base/service.h"

namespace jobq {

std::vector<HostPlaces> DeliveryPool::placesFor(const std::vector<std::string>& hosts) {
  Lock lock(mutex_);
  if (stopping_) return {};
  return receivers_.placesFor(hosts);
}

void DeliveryPool::setNodes(std::uint32_t nodes) {
  Lock lock(mutex_);
  receivers_.setNodes(nodes);
}

bool DeliveryPool::hasPlaces() const {
  Lock lock(mutex_);
  return !stopping_ && receivers_.hasPlaces();
}

void DeliveryPool::start(Delivery delivery) {
  std::list<Place> fresh;
  Place& place = fresh.emplace_back(*this, delivery);
  place.self = fresh.begin();
  place.work = runner_.workOn(std::move(delivery));
  Lock lock(mutex_);
  receivers_.begin(place.host, place.bytes);
  ready_.splice(ready_.end(), fresh);
  try {
    needThread();
  } catch (const std::exception&) {  // no thread, or no memory
    if (!threads_.empty()) return;   // the delivery waits for a busy thread
    receivers_.end(place.host, place.bytes, CallEnd::unknown);
    ready_.erase(place.self);
    throw;
  }
}

// A call has ended on a thread of the transport.
void DeliveryPool::resume(Place& place) noexcept {
  Lock lock(mutex_);
  ready_.splice(ready_.begin(), busy_, place.self);
  try {
    needThread();
  } catch (const std::exception&) {
    // The thread that began the delivery concludes it later.
  }
}

// Wakes or starts a thread for the ready delivery, if one is free. Throws std::system_error and std::bad_alloc.
void DeliveryPool::needThread() {
  changed_.notifyOne();
  if (idle_ >= ready_.size()) return;
  if (threads_.size() < kDeliveryThreads && !stopping_) threads_.emplace_back([this] { runThread(); });
}

void DeliveryPool::runThread() {
  nameThread("webhook");
  while (Place* const place = nextReady()) {
    const bool hasBegun = std::exchange(place->hasBegun, true);
    if (const auto end = hasBegun ? place->work->conclude() : place->work->begin(*place)) release(*place, *end);
  }
}

// Blocks until a delivery is ready. Returns null after a stop, when all deliveries that have begun are over.
DeliveryPool::Place* DeliveryPool::nextReady() {
  Lock lock(mutex_);
  ++idle_;
  while (ready_.empty() || (stopping_ && !ready_.front().hasBegun)) {
    if (stopping_ && busy_.empty()) return nullptr;
    changed_.wait(mutex_);
  }
  --idle_;
  Place& place = ready_.front();
  busy_.splice(busy_.end(), ready_, place.self);
  return &place;
}

void DeliveryPool::release(Place& place, const DeliveryEnd& end) {
  std::list<Place> over;  // destroyed after the lock
  {
    Lock lock(mutex_);
    receivers_.end(place.host, place.bytes, end.call);
    over.splice(over.end(), busy_, place.self);
    if (stopping_) changed_.notifyAll();
  }
  runner_.placeFreed(end.retryAt);
}

std::vector<DeliveryClaim> DeliveryPool::stop() {
  std::vector<std::thread> threads;
  {
    Lock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    changed_.notifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  Lock lock(mutex_);
  std::vector<DeliveryClaim> rest;
  for (const Place& place : ready_) rest.push_back(place.claim);
  ready_.clear();
  return rest;
}

}  // namespace jobq
