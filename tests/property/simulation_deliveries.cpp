// Webhooks in the simulation: callers claim deliveries, record their calls and end the deliveries, each step a move of
// its own, with replays between the steps. Callers outlive a crash, because late reports are the interesting ones.
#include <string>
#include <utility>
#include <vector>

#include "simulation.h"
#include "testkit/outbox_access.h"

namespace jobq::model {

OutboxStore& Simulation::outbox() { return (plan_.judged ? *judge_ : judge_->real()).outbox(); }

// Claims all due deliveries: the order among deliveries due at the same moment is the storage's choice.
void Simulation::claimDeliveries() {
  for (const Delivery& delivery : testkit::claimAllDue(outbox(), Millis(15'000), 1'000'000)) {
    replayed_.erase(delivery.id);  // the call of the replay begins now
    calls_.push_back(delivery.claim());
  }
}

void Simulation::deliver(const Move& move) {
  constexpr std::size_t kCalls = 6;  // number of remembered calls
  if (calls_.empty() || move.b % 5 == 0) return claimDeliveries();
  if (calls_.size() > kCalls) calls_.erase(calls_.begin(), calls_.end() - static_cast<std::ptrdiff_t>(kCalls));
  const DeliveryClaim claim = calls_[move.a % calls_.size()];
  switch (move.b % 5) {
    case 1: (void)outbox().recordAttempt(claim, {{}, 200, Millis(3), "", "ok"}); return;
    case 2: (void)outbox().settle(claim, DeliveryState::delivered); return;
    case 3: (void)outbox().reschedule(claim, Millis(10'000)); return;
    default:
      if (outbox().replay(claim.id)) replayed_.insert(claim.id);
  }
}

// All leases of deliveries have ended, or end with the step.
void Simulation::checkDeliveries() {
  clock_->advance(Millis(15'000));
  claimDeliveries();
  check(replayed_.empty(), "lost replay: nothing is called for " + (replayed_.empty() ? "" : *replayed_.begin()));
}

}  // namespace jobq::model
