// Room 11 (post room): tells the outside how jobs ended, retrying (decisions.md, "Webhooks").
//
// Which thread does what
//  - The scheduler, one thread, looks when it was rung, when the moment of a retry has come that was arranged here, and
//    once a second, because other nodes and former processes owe calls too. It claims what is due, oldest first, and
//    hands each delivery to the crew. It calls the storage, never a transport: no receiver holds it up.
//  - The crew (courier_crew.h), up to kCouriers threads, has one delivery each: the call, its record, and whether it is
//    settled or tried again (errand.h). A courier that is done rings, because a place is free.
//  - ring() comes from any thread that has just ended a job.
//
// Why a receiver that hangs delays nobody else
//  - A call lasts at most kCallTimeout, and at most kCouriersPerHost couriers serve one host. While a host has all of
//    its own, the storage is asked for the others only, and passes over what is owed to it without reading it, be it a
//    hundred thousand. So a host that hangs costs 8 of 64 threads, and a delivery to another one leaves at once as long
//    as fewer than eight hosts hang; when eight do, it waits for the first of their calls to end.
//  - One claim takes no more than fits whatever its hosts turn out to be, so that nothing that was claimed has to wait.
//
// What a failure costs: every delivery is claimed for kDeliveryLease, longer than a call, and is due again when that
// ends. A process that dies, or a storage that fails until then, makes it late or makes it come twice, never lost; a
// receiver knows it by its webhook-id.
#pragma once

#include <atomic>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "core/base/service.h"
#include "core/webhooks/courier_crew.h"
#include "core/webhooks/errand.h"
#include "jobq/mutex.h"
#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

class Courier final : public Service {
 public:
  /// What is in `rooms` outlives it.
  explicit Courier(const Errand::Rooms& rooms);
  ~Courier() override { stop(); }

  /// Looks at once: what a former process owed is due.
  void start() override;

  /// Calls that run are told to stop and are due again at once; they do not count as tries.
  void stop() override;

  /// Something is owed. Any thread; one atomic exchange when it rings already.
  void ring() noexcept;

 private:
  void loop();
  bool awaitNextLook();
  void look();
  void hand(Delivery delivery);
  void attend(Delivery delivery);
  void giveBack(const std::string& delivery, Millis delay) noexcept;

  const Errand::Rooms rooms_;
  std::atomic<bool> rings_ = false;
  std::stop_source stop_;
  Instant looksAt_ = Instant::min();  // the scheduler's

  Mutex mutex_;
  Condition rung_;
  std::set<Instant> retries_ JOBQ_GUARDED_BY(mutex_);  // moments at which something is due that was put off here

  CourierCrew crew_;
  std::thread scheduler_;
};

}  // namespace jobq
