#include "nodes_twins.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory_storage.h"
#include "testkit/forwarding_storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/plain_receiver_names.h"
#include "testkit/returned_jobs.h"
#include "tests/support/shared_memory.h"

namespace jobq::model {
namespace {

constexpr Millis kTooShort{900};  // a node beats every second

/// Says kLeaseLife, whatever the lives last.
class ShortLease final : public testkit::ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  std::optional<Millis> leaseLife() const noexcept override { return test::kLeaseLife; }
};

/// Replaces one store by `Store`.
template <class Store>
class WithLeases final : public testkit::ForwardingStorage {
 public:
  template <class... Args>
  explicit WithLeases(Storage& inner, Args&&... args)
      : ForwardingStorage(inner), leases_(inner, std::forward<Args>(args)...) {}
  LeaseStore& leases() override { return leases_; }

 private:
  Store leases_;
};

/// Keeps the last attempt of each claimed job.
class KnownClaims : public testkit::ForwardingLeases {
 public:
  explicit KnownClaims(Storage& storage) : ForwardingLeases(storage.leases()) {}
  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override {
    ClaimResult claimed = inner_.claim(wants, holder, id, mostBytes);
    for (const ClaimedJob& job : claimed.jobs) last_[job.lease.job] = job.lease;
    return claimed;
  }

 protected:
  std::map<JobId, LeaseRef> last_;
};

class NoAttemptFencing final : public KnownClaims {
 public:
  using KnownClaims::KnownClaims;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    std::vector<EndedAttempt> latest(ends.begin(), ends.end());
    for (EndedAttempt& end : latest) end.lease = last_.at(end.lease.job);
    return inner_.finish(latest, durability, claim);
  }
};

class SweepWithoutCause final : public KnownClaims {
 public:
  using KnownClaims::KnownClaims;
  SweepResult sweep(std::size_t max) override {
    for (const auto& [job, lease] : std::exchange(last_, {})) testkit::release(inner_, {lease});
    return inner_.sweep(max);
  }
};

class RunsNotFollowed final : public testkit::ForwardingLeases {
 public:
  explicit RunsNotFollowed(Storage& storage) : ForwardingLeases(storage.leases()) {}
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override {
    return std::vector<LeaseState>(leases.size(), LeaseState::held);
  }
};

class ClaimsForgotten final : public testkit::ForwardingLeases {
 public:
  explicit ClaimsForgotten(Storage& storage) : ForwardingLeases(storage.leases()) {}
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant>, CallId) override { return {}; }
};

/// Ends the lives of all nodes that have not beaten for kLeaseLife, also if no node could reach the storage.
class NoBeatGap final : public testkit::ForwardingStorage {
 public:
  NoBeatGap(Storage& inner, const Clock& clock)
      : ForwardingStorage(inner), nodes_(inner.nodes(), clock), leases_(inner.leases(), nodes_) {}
  LeaseStore& leases() override { return leases_; }
  NodeStore& nodes() override { return nodes_; }

 private:
  class Nodes final : public testkit::ForwardingNodes {
   public:
    Nodes(NodeStore& inner, const Clock& clock) : ForwardingNodes(inner), clock_(clock) {}
    Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
      Holder life = inner_.join(name, culprit);
      lives_.emplace_back(life, clock_.now());
      return life;
    }
    BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
      for (auto& [life, beatAt] : lives_) {
        if (life == holder) beatAt = clock_.now();
      }
      return inner_.beat(holder, workers);
    }
    void endOverdue() {
      std::erase_if(lives_, [&](const auto& entry) {
        if (clock_.now() - entry.second < test::kLeaseLife) return false;
        inner_.leave(entry.first);
        return true;
      });
    }

   private:
    const Clock& clock_;
    std::vector<std::pair<Holder, Instant>> lives_;
  };
  class Leases final : public testkit::ForwardingLeases {
   public:
    Leases(LeaseStore& inner, Nodes& nodes) : ForwardingLeases(inner), nodes_(nodes) {}
    SweepResult sweep(std::size_t max) override {
      nodes_.endOverdue();
      return inner_.sweep(max);
    }

   private:
    Nodes& nodes_;
  };

  Nodes nodes_;
  Leases leases_;
};

class EpochNotGrown final : public testkit::ForwardingStorage {
 public:
  explicit EpochNotGrown(Storage& inner) : ForwardingStorage(inner), nodes_(inner.nodes()) {}
  NodeStore& nodes() override { return nodes_; }

 private:
  class Nodes final : public testkit::ForwardingNodes {
   public:
    using ForwardingNodes::ForwardingNodes;
    Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
      Holder& life = lives_[std::string(name)];
      if (life.epoch == 0 || inner_.beat(life, {}) != BeatResult::extended) life = inner_.join(name, culprit);
      return life;
    }

   private:
    std::map<std::string, Holder> lives_;
  };
  Nodes nodes_;
};

class InsertTwice final : public testkit::ForwardingStorage {
 public:
  explicit InsertTwice(Storage& inner) : ForwardingStorage(inner), jobs_(inner.jobs()) {}
  JobStore& jobs() override { return jobs_; }

 private:
  class Jobs final : public testkit::ForwardingJobs {
   public:
    using ForwardingJobs::ForwardingJobs;
    InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
      if (!known_.insert(job.id).second) job.id += "again";
      return inner_.insert(std::move(job), policy, terms);
    }

   private:
    std::set<JobId> known_;
  };
  Jobs jobs_;
};

class FinishTwice final : public testkit::ForwardingStorage {
 public:
  explicit FinishTwice(Storage& inner)
      : ForwardingStorage(inner), leases_(inner.leases()), jobs_(inner.jobs(), leases_.repeated) {}
  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }

 private:
  class Leases final : public testkit::ForwardingLeases {
   public:
    using ForwardingLeases::ForwardingLeases;
    FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                        const std::optional<FusedClaim>& claim) override {
      std::vector<LeaseRef> leases;
      for (const EndedAttempt& end : ends) leases.push_back(end.lease);
      const std::vector<LeaseState> before = inner_.states(leases);
      FinishResult done = inner_.finish(ends, durability, claim);
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (done.reports[i] == ReportResult::accepted && before[i] != LeaseState::held) ++repeated;
      }
      return done;
    }
    std::uint64_t repeated = 0;
  };
  class Jobs final : public testkit::ForwardingJobs {
   public:
    Jobs(JobStore& inner, const std::uint64_t& repeated) : ForwardingJobs(inner), repeated_(repeated) {}
    EndpointCounts counts(std::string_view endpoint) override {
      EndpointCounts counts = inner_.counts(endpoint);
      counts.completed += repeated_;
      return counts;
    }

   private:
    const std::uint64_t& repeated_;
  };
  Leases leases_;
  Jobs jobs_;
};

}  // namespace

void CallerClock::waitUntil(Mutex&, Condition&, Instant) { throw std::logic_error("a simulated thread waits"); }

Flaws flawsOf(Twin twin) {
  return {twin == Twin::noSelfFencing, twin == Twin::newsLost, twin == Twin::fencedClaims, twin == Twin::earlyRelease};
}

std::unique_ptr<Storage> openStore(Twin twin, CallerClock& clock, Log& log) {
  if (twin == Twin::hostClock) clock.trustCallers();
  if (twin != Twin::shortLease) return test::sharedMemory(clock, log);
  static const testkit::MapConfig config;
  static const testkit::PlainReceiverNames names;
  return std::make_unique<memory::MemoryStorage>(PluginEnv{config, clock, log, "/nowhere", false, {}, &names},
                                                 kTooShort);
}

std::unique_ptr<Storage> breakStorage(Twin twin, Storage& inner, const Clock& clock) {
  switch (twin) {
    case Twin::noAttemptFencing: return std::make_unique<WithLeases<NoAttemptFencing>>(inner);
    case Twin::shortLease: return std::make_unique<ShortLease>(inner);
    case Twin::epochNotGrown: return std::make_unique<EpochNotGrown>(inner);
    case Twin::insertTwice: return std::make_unique<InsertTwice>(inner);
    case Twin::finishTwice: return std::make_unique<FinishTwice>(inner);
    case Twin::sweepWithoutCause: return std::make_unique<WithLeases<SweepWithoutCause>>(inner);
    case Twin::noBeatGap: return std::make_unique<NoBeatGap>(inner, clock);
    case Twin::runsNotFollowed: return std::make_unique<WithLeases<RunsNotFollowed>>(inner);
    case Twin::claimsForgotten: return std::make_unique<WithLeases<ClaimsForgotten>>(inner);
    default: return nullptr;
  }
}

}  // namespace jobq::model
