#include "nodes_wire.h"

namespace jobq::model {

void Wire::refuseIfCut(std::string_view operation) const {
  if (isClosed_) throw StorageError("the process is dead");
  if (isCut_ && (cutOperation_.empty() || cutOperation_ == operation)) throw StorageError("the network is cut");
}

bool Wire::isHit(std::string_view operation) {
  if (isSlow_ || plan_.times == 0 || (!plan_.operation.empty() && plan_.operation != operation)) return false;
  if (plan_.skipped > 0) {
    --plan_.skipped;
    return false;
  }
  --plan_.times;
  ++faults_;
  return true;
}

// Returns true if the call has a fault behind the step of the storage.
bool Wire::begin(std::string_view operation) {
  events_.beforeCall(operation);
  refuseIfCut(operation);
  if (!isHit(operation)) return false;
  if (plan_.fault == WireFault::refused) throw StorageError("the call is refused");
  if (plan_.fault == WireFault::requestLost) throw OutcomeUnknown("the request is lost");
  if (plan_.fault != WireFault::slowRequest) return true;
  isSlow_ = true;
  events_.passDuringCall(plan_.time);
  isSlow_ = false;
  refuseIfCut(operation);
  return false;
}

void Wire::end(std::string_view operation) {
  const Plan fault = plan_;
  if (fault.fault == WireFault::crash) events_.die();
  if (fault.fault == WireFault::answerLost) throw OutcomeUnknown("the answer is lost");
  if (fault.fault == WireFault::slowAnswer || fault.fault == WireFault::pause) {
    isSlow_ = true;
    fault.fault == WireFault::pause ? events_.passDuringPause(fault.time) : events_.passDuringCall(fault.time);
    isSlow_ = false;
  }
  try {
    refuseIfCut(operation);
  } catch (const StorageError& error) {  // the step has happened
    throw OutcomeUnknown(error.what());
  }
}

InsertResult WiredStorage::Jobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  return wire_.call("jobs.insert", [&] { return inner_.insert(JobSpec(job), policy, terms); });
}
std::optional<Job> WiredStorage::Jobs::find(const JobKey& key, std::uint64_t mostBytes) {
  return wire_.call("jobs.find", [&] { return inner_.find(key, mostBytes); });
}
std::vector<std::optional<JobSummary>> WiredStorage::Jobs::summaries(std::span<const JobKey> keys) {
  return wire_.call("jobs.summaries", [&] { return inner_.summaries(keys); });
}
CancelResult WiredStorage::Jobs::cancel(const JobKey& key) {
  return wire_.call("jobs.cancel", [&] { return inner_.cancel(key); });
}
RequeueResult WiredStorage::Jobs::requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) {
  return wire_.call("jobs.requeue", [&] { return inner_.requeue(key, failedAttempt, policy); });
}
std::optional<Instant> WiredStorage::Jobs::setTtl(const JobKey& key, Millis ttl) {
  return wire_.call("jobs.setTtl", [&] { return inner_.setTtl(key, ttl); });
}
EndpointCounts WiredStorage::Jobs::counts(std::string_view endpoint) {
  return wire_.call("jobs.counts", [&] { return inner_.counts(endpoint); });
}

ClaimResult WiredStorage::Leases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                        std::uint64_t mostBytes) {
  return wire_.call("leases.claim", [&] { return inner_.claim(wants, holder, id, mostBytes); });
}
std::vector<ClaimedJob> WiredStorage::Leases::claimed(std::span<const ClaimWant> wants, CallId id) {
  return wire_.call("leases.claimed", [&] { return inner_.claimed(wants, id); });
}
std::vector<LeaseState> WiredStorage::Leases::states(std::span<const LeaseRef> leases) {
  return wire_.call("leases.states", [&] { return inner_.states(leases); });
}
std::vector<QueuedEndpoint> WiredStorage::Leases::queuedEndpoints() {
  return wire_.call("leases.queuedEndpoints", [&] { return inner_.queuedEndpoints(); });
}
FinishResult WiredStorage::Leases::finish(std::span<const EndedAttempt> ends, Durability durability,
                                          const std::optional<FusedClaim>& claim) {
  return wire_.call("leases.finish", [&] { return inner_.finish(ends, durability, claim); });
}
SweepResult WiredStorage::Leases::giveBack(std::span<const ReturnedJob> jobs) {
  return wire_.call("leases.giveBack", [&] { return inner_.giveBack(jobs); });
}
SweepResult WiredStorage::Leases::sweep(std::size_t max) {
  return wire_.call("leases.sweep", [&] { return inner_.sweep(max); });
}

Holder WiredStorage::Nodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  return wire_.call("nodes.join", [&] { return inner_.join(name, culprit); });
}
BeatResult WiredStorage::Nodes::beat(const Holder& holder, std::span<const EndpointWorkers> workers) {
  return wire_.call("nodes.beat", [&] { return inner_.beat(holder, workers); });
}
void WiredStorage::Nodes::leave(const Holder& holder) {
  (void)wire_.call("nodes.leave", [&] { return inner_.leave(holder), true; });
}
WorkerCounts WiredStorage::Nodes::count(std::string_view endpoint, std::string_view exceptNode) {
  return wire_.call("nodes.count", [&] { return inner_.count(endpoint, exceptNode); });
}
std::vector<NodeInfo> WiredStorage::Nodes::nodes() {
  return wire_.call("nodes.nodes", [&] { return inner_.nodes(); });
}

}  // namespace jobq::model
