// The threads that work on deliveries. A delivery has a thread for its work with the storage. The call of the delivery
// has a thread only if the transport has no begin() (sdk/include/jobq/webhook_transport.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/webhooks/delivery_work.h"
#include "core/webhooks/receiver_table.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

/// Greatest number of threads. A call of a transport that blocks needs a thread, and kPlacesForOthers such calls may
/// hang, so a third of the threads remains for the other deliveries.
inline constexpr std::size_t kDeliveryThreads = 96;
static_assert(kPlacesForOthers <= kDeliveryThreads / 3 * 2);

/// The user of the pool.
class DeliveryRunner {
 public:
  virtual ~DeliveryRunner() = default;

  /// Returns the work on the delivery. Called by start().
  virtual std::unique_ptr<DeliveryWork> workOn(Delivery delivery) = 0;

  /// Called after each delivery on a thread of the pool, as soon as the place is free again. `retryAt` is the time of
  /// the delivery's next attempt, if there is one.
  virtual void placeFreed(std::optional<Instant> retryAt) noexcept = 0;
};

/// A thread is started when a delivery finds no idle thread, and stays until stop(). Any thread may call hasPlaces();
/// placesFor() and start() belong to one thread, the scheduler.
class DeliveryPool {
 public:
  /// `runner` outlives the pool. `places`: bound on the deliveries in hand, as in ReceiverTable.
  explicit DeliveryPool(DeliveryRunner& runner, std::size_t places = kPlaces) : runner_(runner), receivers_(places) {}
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
  /// delivery, and any exception of workOn().
  void start(Delivery delivery);

  /// Ends the pool; no delivery begins after the call. Blocks until the deliveries that have begun are over and every
  /// thread has ended. Returns the claims of the deliveries not begun.
  [[nodiscard]] std::vector<DeliveryClaim> stop();

 private:
  /// A delivery from its start to its end.
  struct Place final : CallListener {
    Place(DeliveryPool& ownPool, const Delivery& delivery)
        : pool(ownPool),
          claim(delivery.claim()),
          host(delivery.host),
          bytes(delivery.job.output.size() + delivery.input.size()) {}
    void callEnded() noexcept override { pool.resume(*this); }

    DeliveryPool& pool;
    const DeliveryClaim claim;
    const std::string host;
    const std::size_t bytes;
    std::unique_ptr<DeliveryWork> work;
    bool hasBegun = false;
    std::list<Place>::iterator self;
  };

  void resume(Place& place) noexcept;
  void needThread() JOBQ_REQUIRES(mutex_);
  void runThread();
  Place* nextReady();
  void release(Place& place, const DeliveryEnd& end);

  DeliveryRunner& runner_;

  mutable Mutex mutex_;
  Condition changed_;
  std::list<Place> ready_ JOBQ_GUARDED_BY(mutex_);   // with work for a thread; deliveries not begun are at the end
  std::list<Place> busy_ JOBQ_GUARDED_BY(mutex_);    // a thread works on the delivery, or its call is under way
  ReceiverTable receivers_ JOBQ_GUARDED_BY(mutex_);  // counts both
  std::size_t idle_ JOBQ_GUARDED_BY(mutex_) = 0;     // number of idle threads
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
