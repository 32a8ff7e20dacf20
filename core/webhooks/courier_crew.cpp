#include "core/webhooks/courier_crew.h"

#include <algorithm>
#include <system_error>

#include "core/base/service.h"

namespace jobq {

CourierCrew::Room CourierCrew::room() const {
  Room room;
  Lock lock(mutex_);
  std::size_t most = 0;
  for (const auto& [host, count] : byHost_) {
    if (count >= kCouriersPerHost) {
      room.busyHosts.push_back(host);
    } else {
      most = std::max(most, count);
    }
  }
  room.deliveries = stopping_ || bytes_ >= kCouriersBytes ? 0 : std::min(kCouriers - inHand_, kCouriersPerHost - most);
  return room;
}

void CourierCrew::give(Delivery delivery) {
  Lock lock(mutex_);
  const auto host = byHost_.try_emplace(delivery.host).first;
  const std::size_t bytes = delivery.job.output.size() + delivery.input.size();
  inbox_.push_back({std::move(delivery), host, bytes});
  ++host->second;
  bytes_ += bytes;
  ++inHand_;
  if (idle_ >= inbox_.size()) {
    given_.notifyOne();
    return;
  }
  if (threads_.size() == kCouriers) return;  // one of them is about to come
  try {
    threads_.emplace_back([this] { live(); });
  } catch (const std::system_error&) {
    if (!threads_.empty()) return;  // it waits for one that is busy
    leave(inbox_.back());
    inbox_.pop_back();
    throw;
  }
}

void CourierCrew::leave(const Given& given) {
  if (--given.host->second == 0) byHost_.erase(given.host);
  bytes_ -= given.bytes;
  --inHand_;
}

void CourierCrew::live() {
  nameThread("courier");
  for (;;) {
    Given given;
    {
      Lock lock(mutex_);
      ++idle_;
      while (inbox_.empty() && !stopping_) given_.wait(mutex_);
      --idle_;
      if (stopping_) return;
      given = std::move(inbox_.front());
      inbox_.pop_front();
    }
    work_(std::move(given.delivery));
    {
      Lock lock(mutex_);
      leave(given);
    }
    freed_();
  }
}

std::vector<Delivery> CourierCrew::stop() {
  std::vector<std::thread> threads;
  {
    Lock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    given_.notifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  Lock lock(mutex_);
  std::vector<Delivery> rest;
  for (Given& given : inbox_) rest.push_back(std::move(given.delivery));
  inbox_.clear();
  return rest;
}

}  // namespace jobq
