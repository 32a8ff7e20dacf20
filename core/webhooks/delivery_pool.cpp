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
  Lock lock(mutex_);
  const std::size_t bytes = delivery.job.output.size() + delivery.input.size();
  std::string host = delivery.host;
  pending_.push_back({std::move(delivery), std::move(host), bytes});
  try {
    receivers_.begin(pending_.back().host, bytes);
  } catch (...) {
    pending_.pop_back();
    throw;
  }
  if (idle_ >= pending_.size()) {
    started_.notifyOne();
    return;
  }
  if (threads_.size() == kPlaces) return;  // a busy thread takes the delivery next
  try {
    threads_.emplace_back([this] { runThread(); });
  } catch (const std::exception&) {  // no thread, or no memory
    if (!threads_.empty()) return;   // the delivery waits for a busy thread
    receivers_.end(pending_.back().host, bytes, CallEnd::unknown);
    pending_.pop_back();
    throw;
  }
}

void DeliveryPool::runThread() {
  nameThread("webhook");
  for (;;) {
    PendingDelivery given;
    {
      Lock lock(mutex_);
      ++idle_;
      while (pending_.empty() && !stopping_) started_.wait(mutex_);
      --idle_;
      if (stopping_) return;
      given = std::move(pending_.front());
      pending_.pop_front();
    }
    const CallEnd how = runner_.deliver(std::move(given.delivery));
    {
      Lock lock(mutex_);
      receivers_.end(given.host, given.bytes, how);
    }
    runner_.placeFreed();
  }
}

std::vector<Delivery> DeliveryPool::stop() {
  std::vector<std::thread> threads;
  {
    Lock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    started_.notifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  Lock lock(mutex_);
  std::vector<Delivery> rest;
  for (PendingDelivery& given : pending_) rest.push_back(std::move(given.delivery));
  pending_.clear();
  return rest;
}

}  // namespace jobq
