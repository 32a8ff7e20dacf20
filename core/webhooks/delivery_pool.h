// The threads that deliver webhooks, up to kPlaces, one delivery each.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/webhooks/receiver_table.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"

namespace jobq {

/// Threads are started when a delivery finds none idle, and stay until stop().
class DeliveryPool {
 public:
  /// `work` makes the call on a courier's thread, throws nothing, and returns how it ended; `freed` is called
  /// afterwards, when the place is free again.
  DeliveryPool(std::function<CallEnd(Delivery)> work, std::function<void()> freed)
      : work_(std::move(work)), freed_(std::move(freed)) {}
  ~DeliveryPool() { (void)stop(); }

  /// Returns how many of the due deliveries of each host may be given now. For the thread that gives: only give() makes
  /// them fewer.
  std::vector<HostPlaces> placesFor(const std::vector<std::string>& hosts);
  /// Returns whether share() could name a host.
  bool hasPlaces() const;

  /// Throws std::system_error when no thread can be started for it, and none is there that will come to it.
  void start(Delivery delivery);

  /// No delivery is begun any more. Blocks until every thread has ended; returns those that were not begun.
  [[nodiscard]] std::vector<Delivery> stop();

 private:
  struct PendingDelivery {
    Delivery delivery;
    std::string host;
    std::size_t bytes = 0;
  };

  void runThread();

  const std::function<CallEnd(Delivery)> work_;
  const std::function<void()> freed_;

  mutable Mutex mutex_;
  Condition started_;
  std::deque<PendingDelivery> pending_ JOBQ_GUARDED_BY(mutex_);
  ReceiverTable receivers_ JOBQ_GUARDED_BY(mutex_);  // counts those of the inbox, too
  std::size_t idle_ JOBQ_GUARDED_BY(mutex_) = 0;     // threads
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
