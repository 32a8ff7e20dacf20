#include "outside.h"

#include <utility>

#include "jobq/lease_store.h"
#include "testkit/outbox_access.h"

namespace jobq::model {

// A loss of power may undo a claim, and a remote worker survives the loss of power: the worker learns of its claim
// after a synced step only.
void RemoteWorkers::claim(std::uint32_t number, const Holder& holder) {
  std::vector<WorkerId> workers{"remote0"};
  if (number % 2 == 1) workers.push_back("remote1");
  const std::vector wants{ClaimWant{std::string(kRemote), workers}};
  const std::vector<ClaimedJob> claimed = world_.storage().leases().claim(wants, holder, ++lastClaim_).jobs;
  world_.storage().check();
  for (const ClaimedJob& job : claimed) runs_.push_back({job.lease, !job.webhook.empty(), RunProgress(job.logLines)});
}

void RemoteWorkers::ask(std::size_t which) {
  if (!runs_.empty()) (void)world_.storage().leases().states(std::vector{runs_[which % runs_.size()].lease});
}

void RemoteWorkers::report(std::size_t which, std::uint32_t number) {
  if (runs_.empty()) return;
  Run& run = runs_[which % runs_.size()];
  run.progress.report(run.lease, number, world_.storage());
}

bool RemoteWorkers::finish(std::size_t which, Outcome outcome, RunReports& reports) {
  if (runs_.empty()) return false;
  const auto run = runs_.begin() + static_cast<std::ptrdiff_t>(which % runs_.size());
  (void)reports.finish(run->lease, std::move(outcome), run->owesWebhook);
  runs_.erase(run);
  return true;
}

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
  world_.time.advance(Millis(15'000));
  claim();
  if (!replayed_.empty()) world_.rules.findings.note("lost replay: nothing is called for " + *replayed_.begin());
}

}  // namespace jobq::model
