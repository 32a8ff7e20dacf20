#include "core/webhooks/courier_crew.h"

#include <exception>

#include "core/base/service.h"

namespace jobq {

std::vector<HostPlaces> CourierCrew::share(const std::vector<std::string>& hosts) {
  Lock lock(mutex_);
  if (stopping_) return {};
  return receivers_.share(hosts);
}

bool CourierCrew::hasPlaces() const {
  Lock lock(mutex_);
  return !stopping_ && receivers_.hasPlaces();
}

void CourierCrew::give(Delivery delivery) {
  Lock lock(mutex_);
  const std::size_t bytes = delivery.job.output.size() + delivery.input.size();
  std::string host = delivery.host;
  inbox_.push_back({std::move(delivery), std::move(host), bytes});
  try {
    receivers_.begin(inbox_.back().host, bytes);
  } catch (...) {
    inbox_.pop_back();
    throw;
  }
  if (idle_ >= inbox_.size()) {
    given_.notifyOne();
    return;
  }
  if (threads_.size() == kPlaces) return;  // one of them is about to come
  try {
    threads_.emplace_back([this] { live(); });
  } catch (const std::exception&) {  // no thread, or no memory
    if (!threads_.empty()) return;   // it waits for one that is busy
    receivers_.end(inbox_.back().host, bytes, CallEnd::unknown);
    inbox_.pop_back();
    throw;
  }
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
    const CallEnd how = work_(std::move(given.delivery));
    {
      Lock lock(mutex_);
      receivers_.end(given.host, given.bytes, how);
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
