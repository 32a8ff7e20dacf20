#include "observer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "testkit/forwarding_storage.h"

namespace jobq::model {
namespace {

class ObservedJobs final : public testkit::ForwardingJobs {
 public:
  ObservedJobs(JobStore& inner, Rules& rules) : ForwardingJobs(inner), rules_(rules) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
    const JobSpec copy = job;
    InsertResult result = inner_.insert(std::move(job), policy, terms);
    if (!std::holds_alternative<Inserted>(result)) return result;
    rules_.jobs.inserted(copy);
    if (const auto* begun = std::get_if<Begun>(&terms.start)) {
      ClaimedJob run;
      run.lease = {copy.id, 1};
      run.endpoint = copy.endpoint;
      run.input = copy.input;
      rules_.jobs.claimed({run}, begun->holder);
      if (begun->outcome != nullptr) rules_.jobs.finished(run.lease, *begun->outcome);
    }
    rules_.jobs.noteSynced();
    return result;
  }
  // A job that is not inserted, because its key is known, is never claimed.
  void insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                   std::unique_ptr<InsertReceiver> receiver) override {
    rules_.jobs.inserted(job);
    inner_.insertLater(std::move(job), policy, std::move(idempotency), std::move(receiver));
  }
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override {
    const RequeueResult result = inner_.requeue(key, failedAttempt, policy);
    if (std::holds_alternative<Requeued>(result)) rules_.jobs.requeued(key, failedAttempt);
    return result;
  }
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override {
    const std::optional<Instant> expiry = inner_.setTtl(key, ttl);
    if (expiry) rules_.jobs.setTtl(key, *expiry);
    return expiry;
  }

 private:
  Rules& rules_;
};

class ObservedLeases final : public testkit::ForwardingLeases {
 public:
  ObservedLeases(Storage& inner, Rules& rules) : ForwardingLeases(inner.leases()), storage_(inner), rules_(rules) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override {
    ClaimResult claimed = inner_.claim(wants, holder, id, mostBytes);
    rules_.jobs.claimed(claimed.jobs, holder);
    return claimed;
  }
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    FinishResult done = inner_.finish(ends, durability, claim);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (done.reports[i] == ReportResult::accepted) rules_.jobs.finished(ends[i].lease, ends[i].outcome);
    }
    if (durability == Durability::synced) rules_.jobs.noteSynced();
    if (claim) rules_.jobs.claimed(done.claimed, claim->holder);
    return done;
  }
  // The life of the node goes on, so no rule of lives judges a loss.
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override {
    std::vector<LeaseRef> leases;
    for (const ReturnedJob& job : jobs) leases.push_back(job.lease);
    const std::vector<LeaseState> states = inner_.states(leases);
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if (states[i] == LeaseState::held) rules_.handlers.releasing(leases[i]);
    }
    return inner_.giveBack(jobs);
  }
  SweepResult sweep(std::size_t max) override {
    SweepResult swept = inner_.sweep(max);
    if (!storage_.leaseLife()) {  // the schedule decides when a stopped handler returns
      for (const LeaseRef& lease : swept.stopped) rules_.handlers.noteOverdue(lease);
      rules_.jobs.noteSynced();
      return swept;
    }
    for (const LeaseRef& lease : swept.stopped) {
      rules_.jobs.stopped(lease, storage_.jobs().find(rules_.jobs.keyOf(lease)));
    }
    for (const JobKey& key : swept.expired) rules_.jobs.expired(key);
    return swept;
  }

 private:
  Storage& storage_;
  Rules& rules_;
};

class ObservedNodes final : public testkit::ForwardingNodes {
 public:
  ObservedNodes(NodeStore& inner, Rules& rules) : ForwardingNodes(inner), rules_(rules) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
    Holder holder = inner_.join(name, culprit);
    rules_.lives.joined(holder);
    rules_.jobs.noteSynced();
    return holder;
  }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    const BeatResult result = inner_.beat(holder, workers);
    if (result == BeatResult::extended) rules_.lives.beaten(holder);
    return result;
  }
  void leave(const Holder& holder) override {
    inner_.leave(holder);
    rules_.lives.left(holder);
  }

 private:
  Rules& rules_;
};

class ObservedStorage final : public testkit::ForwardingStorage {
 public:
  ObservedStorage(Storage& inner, Rules& rules)
      : ForwardingStorage(inner),
        rules_(rules),
        jobs_(inner.jobs(), rules),
        leases_(inner, rules),
        nodes_(inner.nodes(), rules) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  NodeStore& nodes() override { return nodes_; }
  Capabilities capabilities() const noexcept override { return inner_.capabilities(); }
  void check() override {
    inner_.check();
    rules_.jobs.noteSynced();
  }
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) override {
    const JobSpec copy = job;
    InsertedAndClaimed done = inner_.insertAndClaim(std::move(job), policy, idempotency, claim);
    if (std::holds_alternative<Inserted>(done.inserted)) rules_.jobs.inserted(copy);
    rules_.jobs.claimed(done.claimed, claim.holder);
    return done;
  }

 private:
  Rules& rules_;
  ObservedJobs jobs_;
  ObservedLeases leases_;
  ObservedNodes nodes_;
};

}  // namespace

std::unique_ptr<Storage> observe(Storage& inner, Rules& rules) {
  return std::make_unique<ObservedStorage>(inner, rules);
}

}  // namespace jobq::model
