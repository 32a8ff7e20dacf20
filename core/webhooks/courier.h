// Room 11 (post room): tells the outside how jobs ended, retrying (core/decisions/webhooks.md).
//
// Which thread does what
//  - The scheduler, one thread, looks when it was rung, when the moment of a retry has come that was arranged here, and
//    once a second, because other nodes and former processes owe calls too. It asks the storage for the hosts to which
//    something is due, claims as many deliveries of each as may begin, and hands them to the crew. It calls the
//    storage, never a transport: no receiver holds it up.
//  - The crew (courier_crew.h), up to kPlaces threads, has one delivery each: the call, its record, and whether it is
//    settled or tried again (errand.h). A thread that is done rings, because a place is free.
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
#include "core/webhooks/courier_crew.h"
#include "core/webhooks/errand.h"
#include "core/webhooks/receiver_table.h"
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
  bool claimFrom(std::string& after);
  void hand(Delivery delivery);
  CallEnd attend(Delivery delivery);
  void giveBack(const DeliveryClaim& claim, Millis delay) noexcept;

  const Errand::Rooms rooms_;
  std::atomic<bool> rings_ = false;
  std::stop_source stop_;
  Instant looksAt_ = Instant::min();  // the scheduler's, as the next one
  Instant restsUntil_ = Instant::min();
  std::string lastHost_;  // the next look begins behind it
  std::string served_;    // the last host of the page that was given places last

  Mutex mutex_;
  Condition rung_;
  std::set<Instant> retries_ JOBQ_GUARDED_BY(mutex_);  // moments at which something is due that was put off here

  CourierCrew crew_;
  std::thread scheduler_;
};

}  // namespace jobq
