#include <string>
#include <utility>

#include "simulation_callers.h"
#include "testkit/outbox_access.h"

namespace jobq::model {

// Claims all due deliveries: the order among deliveries due at the same moment is the storage's choice.
void DeliveryCallers::claim() {
  for (const Delivery& delivery : testkit::claimAllDue(world_.storage().outbox(), Millis(15'000), 1'000'000)) {
    replayed_.erase(delivery.id);  // the call of the replay begins now
    calls_.push_back(delivery.claim());
  }
}

void DeliveryCallers::deliver(const Move& move) {
  constexpr std::size_t kCalls = 6;  // number of remembered calls
  if (calls_.empty() || move.b % 5 == 0) return claim();
  if (calls_.size() > kCalls) calls_.erase(calls_.begin(), calls_.end() - static_cast<std::ptrdiff_t>(kCalls));
  const DeliveryClaim& call = calls_[move.a % calls_.size()];
  OutboxStore& outbox = world_.storage().outbox();
  switch (move.b % 5) {
    case 1: (void)testkit::recordNext(outbox, call, {{}, 200, Millis(3), std::nullopt, "ok"}); return;
    case 2: (void)outbox.finishDelivery(call, DeliveryState::delivered); return;
    case 3: (void)outbox.reschedule(call, Millis(10'000)); return;
    default:
      if (outbox.replay(call.id)) replayed_.insert(call.id);
  }
}

void DeliveryCallers::checkReplays() {
  world_.clock->advance(Millis(15'000));
  claim();
  world_.rules.check(replayed_.empty(),
                     "lost replay: nothing is called for " + (replayed_.empty() ? "" : *replayed_.begin()));
}

}  // namespace jobq::model
