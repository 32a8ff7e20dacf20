// Stage webhook delivery: reports the end of jobs to receivers, with retries (core/decisions/webhooks.md).
//
// Threads
//  - The scheduler, one thread, makes a pass after a notification, at the time of a retry arranged here, and once a
//    second, because other nodes and former processes owe webhooks too. A pass reads the hosts with due deliveries once
//    from the storage, claims as many deliveries of each host as may start, and starts them in the pool. A pause
//    follows each pass, as long as the pass and at most ten seconds. The scheduler calls the storage and never a
//    transport, so no receiver delays the scheduler.
//  - The pool (core/webhooks/delivery_pool.h), up to kDeliveryThreads threads, works on up to kPlaces deliveries: the
//    begin of the call, and after its end the record, and the end or the next attempt of the delivery
//    (core/webhooks/delivery_task.h). A call waits for its answer in the transport, and on a thread of the pool only if
//    the transport has no begin(). A thread notifies the scheduler after each delivery, because a place is free.
//  - Any thread that has just ended a job calls notify().
//
// Receivers that hang delay no other receiver
//  - A call lasts at most kCallTimeout. A host that hangs has one place, all such hosts together have 64 of 512 places,
//    and places go round in turns (core/webhooks/receiver_table.h). The storage is read by host, so the deliveries of a
//    host without a free place are not read, even a hundred thousand of them.
//  - A claim takes only as many deliveries as may start, so a claimed delivery never waits for a place.
//
// Failures: every delivery is claimed for kDeliveryLease, longer than a call, and is due again at the end of the lease.
// A dead process, or a storage failing until then, makes a delivery late or repeats a call, and never loses a delivery;
// the receiver recognises a repetition by its webhook-id. Deliveries that wait too long are abandoned with a reason
// (core/maintenance/outbox_cleaner.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "core/base/service.h"
#include "core/model/delivery_notifier.h"
#include "core/webhooks/delivery_pool.h"
#include "core/webhooks/delivery_task.h"
#include "core/webhooks/delivery_work.h"
#include "core/webhooks/receiver_table.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

/// The scheduler with its pool. One thread starts and stops the dispatcher.
class WebhookDispatcher final : public Service, public DeliveryNotifier, private DeliveryRunner {
 public:
  /// The objects in `deps` outlive the dispatcher. `places`: bound on the deliveries in hand, as in ReceiverTable.
  explicit WebhookDispatcher(const DeliveryTask::Deps& deps, std::size_t places = kPlaces);
  ~WebhookDispatcher() override { stop(); }

  /// Starts the scheduler with an immediate pass, because deliveries of a former process may be due.
  void start() override;

  /// Tells running calls to stop; their deliveries are due again at once, and the calls do not count as tries. Blocks
  /// until all threads have ended.
  void stop() override;

  /// Sets the number of living nodes, at least 1, which share the places of each host. Any thread.
  void setNodes(std::uint32_t nodes) { pool_.setNodes(nodes); }

  /// Announces a new delivery. Any thread may call; costs one atomic exchange if a notification is pending already.
  void notify() noexcept override;

 private:
  void loop();
  bool awaitNextPass();
  void runPass();
  bool claimFrom(std::string& after);
  void startDelivery(Delivery delivery);
  std::unique_ptr<DeliveryWork> workOn(Delivery delivery) override;
  void placeFreed(std::optional<Instant> retryAt) noexcept override;
  void reschedule(const DeliveryClaim& claim, Millis delay) noexcept;

  const DeliveryTask::Deps deps_;
  std::atomic<bool> notified_ = false;
  std::stop_source stop_;
  Instant nextPassAt_ = Instant::min();  // used by the scheduler only, like the next three members
  Instant pausedUntil_ = Instant::min();
  std::string lastHost_;        // the next pass begins behind this host
  std::string lastServedPage_;  // last host of the page that received places last

  Mutex mutex_;
  Condition wake_;
  std::set<Instant> retries_ JOBQ_GUARDED_BY(mutex_);  // times of retries arranged here

  DeliveryPool pool_;
  std::thread scheduler_;
};

}  // namespace jobq
