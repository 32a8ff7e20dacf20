// Room 11 (post room): tells the outside how jobs ended, retrying (core/decisions/webhooks.md).
//
// Which thread does what
//  - The scheduler, one thread, looks when it was rung, when the moment of a retry has come that was arranged here, and
//    once a second, because other nodes and former processes owe calls too. It asks the storage for the hosts to which
//    something is due, claims as many deliveries of each as may begin, and hands them to the crew. It calls the
//    storage, never a transport: no receiver holds it up.
//  - The crew (delivery_pool.h), up to kPlaces threads, has one delivery each: the call, its record, and whether it is
//    settled or tried again (delivery_task.h). A thread that is done rings, because a place is free.
//  - ring() comes from any thread that has just ended a job.
//
// Why a receiver that hangs delays nobody else
//  - A call lasts at most kCallTimeout. A host that hangs has one place, all hosts that hang together have 48 of 64,
//  and
//    the places go round in turns (receiver_table.h). The storage is asked for what is due by host, so what is owed to
//    a host without a free place is not read, be it a hundred thousand deliveries.
//  - One claim takes no more than may begin, so that nothing that was claimed has to wait.
//
// What a failure costs: every delivery is claimed for kDeliveryLease, longer than a call, and is due again when that
// ends. A process that dies, or a storage that fails until then, makes it late or makes it come twice, never lost; a
// receiver knows it by its webhook-id. What waits for too long is given up, with a reason
// (core/maintenance/outbox_cleaner.h).
#pragma once

#include <atomic>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "core/base/service.h"
#include "core/webhooks/delivery_pool.h"
#include "core/webhooks/delivery_task.h"
#include "core/webhooks/receiver_table.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

class WebhookDispatcher final : public Service {
 public:
  /// What is in `rooms` outlives it.
  explicit WebhookDispatcher(const DeliveryTask::Deps& deps);
  ~WebhookDispatcher() override { stop(); }

  /// Looks at once: what a former process owed is due.
  void start() override;

  /// Calls that run are told to stop and are due again at once; they do not count as tries.
  void stop() override;

  /// Something is owed. Any thread; one atomic exchange when it rings already.
  void notify() noexcept;

 private:
  void loop();
  bool awaitNextPass();
  void runPass();
  bool claimFrom(std::string& after);
  void startDelivery(Delivery delivery);
  CallEnd deliver(Delivery delivery);
  void reschedule(const DeliveryClaim& claim, Millis delay) noexcept;

  const DeliveryTask::Deps deps_;
  std::atomic<bool> notified_ = false;
  std::stop_source stop_;
  Instant nextPassAt_ = Instant::min();  // the scheduler's, as the next one
  Instant pausedUntil_ = Instant::min();
  std::string lastHost_;  // the next look begins behind it
  std::string served_;    // the last host of the page that was given places last

  Mutex mutex_;
  Condition wake_;
  std::set<Instant> retries_ JOBQ_GUARDED_BY(mutex_);  // moments at which something is due that was put off here

  DeliveryPool pool_;
  std::thread scheduler_;
};

}  // namespace jobq
