// The threads that deliver webhooks: up to kPlaces, with one delivery each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "core/webhooks/receiver_table.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"

namespace jobq {

/// The work of the pool's threads.
class DeliveryRunner {
 public:
  virtual ~DeliveryRunner() = default;

  /// Makes the call of the delivery and returns how the call ended. Threads of the pool call, several at once. Throws
  /// nothing.
  virtual CallEnd deliver(Delivery delivery) = 0;

  /// Called after each delivery on the same thread, as soon as the place is free again.
  virtual void placeFreed() noexcept = 0;
};

/// A thread is started when a delivery finds no idle thread, and stays until stop(). Any thread may call hasPlaces();
/// placesFor() and start() belong to one thread, the scheduler.
class DeliveryPool {
 public:
  /// `runner` outlives the pool.
  explicit DeliveryPool(DeliveryRunner& runner) : runner_(runner) {}
  /// Calls stop() and drops the deliveries not begun; their leases end by time.
  ~DeliveryPool() { (void)stop(); }

  /// Returns how many due deliveries of each host may start now. The numbers stay valid for the scheduler, because only
  /// start() lowers the number of free places.
  std::vector<HostPlaces> placesFor(const std::vector<std::string>& hosts);
  /// Sets the number of living nodes, which share the places of each host. Any thread.
  void setNodes(std::uint32_t nodes);

  /// Returns whether placesFor() could name a host.
  bool hasPlaces() const;

  /// Takes a claimed delivery. Throws std::system_error if no thread can be started and no running thread will take the
  /// delivery.
  void start(Delivery delivery);

  /// Ends the pool; no delivery begins after the call. Blocks until every thread has ended. Returns the deliveries not
  /// begun.
  [[nodiscard]] std::vector<Delivery> stop();

 private:
  struct PendingDelivery {
    Delivery delivery;
    std::string host;
    std::size_t bytes = 0;
  };

  void runThread();

  DeliveryRunner& runner_;

  mutable Mutex mutex_;
  Condition started_;
  std::deque<PendingDelivery> pending_ JOBQ_GUARDED_BY(mutex_);
  ReceiverTable receivers_ JOBQ_GUARDED_BY(mutex_);  // counts pending deliveries too
  std::size_t idle_ JOBQ_GUARDED_BY(mutex_) = 0;     // number of idle threads
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
