#include "twins.h"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "testkit/forwarding_storage.h"
#include "testkit/returned_jobs.h"
#include "tests/support/shared_memory.h"

namespace jobq::model {
namespace {

constexpr Millis kTooShort{900};  // a node beats every second

/// Keeps the last beat of each life.
class TwinNodes final : public testkit::ForwardingNodes {
 public:
  TwinNodes(NodeStore& inner, Twin twin, const Clock& clock) : ForwardingNodes(inner), twin_(twin), clock_(clock) {}

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
    Holder& life = lives_[std::string(name)];
    const bool goesOn = twin_ == Twin::epochNotGrown && life.epoch != 0;
    if (!goesOn || inner_.beat(life, {}) != BeatResult::extended) life = inner_.join(name, culprit);
    beats_.emplace_back(life, clock_.now());
    return life;
  }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    for (auto& [life, beatAt] : beats_) {
      if (life == holder) beatAt = clock_.now();
    }
    return inner_.beat(holder, workers);
  }
  /// Ends the lives of all nodes that have not beaten for kLeaseLife, also if no node could reach the storage.
  void endOverdue() {
    std::erase_if(beats_, [&](const auto& entry) {
      if (clock_.now() - entry.second < test::kLeaseLife) return false;
      inner_.leave(entry.first);
      return true;
    });
  }

 private:
  const Twin twin_;
  const Clock& clock_;
  std::map<std::string, Holder> lives_;
  std::vector<std::pair<Holder, Instant>> beats_;
};

/// Keeps the last attempt of each claimed job.
class TwinLeases final : public testkit::ForwardingLeases {
 public:
  TwinLeases(LeaseStore& inner, Twin twin, TwinNodes& nodes) : ForwardingLeases(inner), twin_(twin), nodes_(nodes) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override {
    ClaimResult claimed = inner_.claim(wants, holder, id, mostBytes);
    for (const ClaimedJob& job : claimed.jobs) last_[job.lease.job] = job.lease;
    return claimed;
  }
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override {
    if (twin_ == Twin::claimsForgotten) return {};
    return inner_.claimed(wants, id);
  }
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override {
    if (twin_ == Twin::runsNotFollowed) return std::vector<LeaseState>(leases.size(), LeaseState::held);
    return inner_.states(leases);
  }
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    std::vector<EndedAttempt> reported(ends.begin(), ends.end());
    std::vector<LeaseRef> leases;
    for (EndedAttempt& end : reported) {
      if (twin_ == Twin::noAttemptFencing) end.lease = last_.at(end.lease.job);
      leases.push_back(end.lease);
    }
    const std::vector<LeaseState> before = inner_.states(leases);
    FinishResult done = inner_.finish(reported, durability, claim);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (done.reports[i] == ReportResult::accepted && before[i] != LeaseState::held) ++repeated;
    }
    return done;
  }
  SweepResult sweep(std::size_t max) override {
    if (twin_ == Twin::noBeatGap) nodes_.endOverdue();
    if (twin_ == Twin::sweepWithoutCause) {
      for (const auto& [job, lease] : std::exchange(last_, {})) testkit::release(inner_, {lease});
    }
    return inner_.sweep(max);
  }

  std::uint64_t repeated = 0;  ///< accepted reports of attempts that had ended

 private:
  const Twin twin_;
  TwinNodes& nodes_;
  std::map<JobId, LeaseRef> last_;
};

class TwinJobs final : public testkit::ForwardingJobs {
 public:
  TwinJobs(JobStore& inner, Twin twin, const TwinLeases& leases)
      : ForwardingJobs(inner), twin_(twin), leases_(leases) {}

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
    if (twin_ == Twin::insertTwice && !known_.insert(job.id).second) job.id += "again";
    return inner_.insert(std::move(job), policy, terms);
  }
  EndpointCounts counts(std::string_view endpoint) override {
    EndpointCounts counts = inner_.counts(endpoint);
    if (twin_ == Twin::finishTwice) counts.completed += leases_.repeated;
    return counts;
  }

 private:
  const Twin twin_;
  const TwinLeases& leases_;
  std::set<JobId> known_;
};

class TwinStorage final : public testkit::ForwardingStorage {
 public:
  TwinStorage(Storage& inner, Twin twin, const Clock& clock)
      : ForwardingStorage(inner),
        nodes_(inner.nodes(), twin, clock),
        leases_(inner.leases(), twin, nodes_),
        jobs_(inner.jobs(), twin, leases_) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  NodeStore& nodes() override { return nodes_; }
  /// Says kLeaseLife, whatever the lives last.
  std::optional<Millis> leaseLife() const noexcept override { return test::kLeaseLife; }

 private:
  TwinNodes nodes_;
  TwinLeases leases_;
  TwinJobs jobs_;
};

}  // namespace

std::unique_ptr<Storage> openStore(Twin twin, Clock& clock, Log& log) {
  return test::sharedMemory(clock, log, twin == Twin::shortLease ? kTooShort : test::kLeaseLife);
}

std::unique_ptr<Storage> breakStorage(Twin twin, Storage& inner, const Clock& clock) {
  return std::make_unique<TwinStorage>(inner, twin, clock);
}

}  // namespace jobq::model
