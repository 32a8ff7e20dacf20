// Shows each step of the storage to the judge of the simulation of nodes. All nodes share one observer between the
// wires and the storage: a step with a lost answer is a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "nodes_judge.h"
#include "testkit/forwarding_storage.h"

namespace jobq::model {

class ObservedStorage final : public testkit::ForwardingStorage {
 public:
  ObservedStorage(Storage& inner, NodesJudge& judge)
      : ForwardingStorage(inner), jobs_(inner.jobs(), judge), leases_(inner, judge), nodes_(inner.nodes(), judge) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  NodeStore& nodes() override { return nodes_; }

 private:
  class Jobs final : public testkit::ForwardingJobs {
   public:
    Jobs(JobStore& inner, NodesJudge& judge) : ForwardingJobs(inner), judge_(judge) {}
    InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override;
    RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override;
    std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override;

   private:
    NodesJudge& judge_;
  };

  class Leases final : public testkit::ForwardingLeases {
   public:
    Leases(Storage& inner, NodesJudge& judge) : ForwardingLeases(inner.leases()), storage_(inner), judge_(judge) {}
    ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                      std::uint64_t mostBytes) override;
    FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                        const std::optional<FusedClaim>& claim) override;
    SweepResult giveBack(std::span<const ReturnedJob> jobs) override;
    SweepResult sweep(std::size_t max) override;

   private:
    Storage& storage_;
    NodesJudge& judge_;
    std::map<JobId, EndpointId> endpoints_;  // endpoint of each claimed job
  };

  class Nodes final : public testkit::ForwardingNodes {
   public:
    Nodes(NodeStore& inner, NodesJudge& judge) : ForwardingNodes(inner), judge_(judge) {}
    Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
    BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override;
    void leave(const Holder& holder) override;

   private:
    NodesJudge& judge_;
  };

  Jobs jobs_;
  Leases leases_;
  Nodes nodes_;
};

}  // namespace jobq::model
