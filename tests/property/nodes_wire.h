// The way between a node and the storage in the simulation of nodes. The way may be cut, lose a request or an answer,
// or be slow; the node may die or stop during a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"

namespace jobq::model {

/// Fate of a call.
enum class WireFault : std::uint8_t {
  refused,      ///< the call fails and changes nothing
  requestLost,  ///< the call is not done, and the node cannot know
  answerLost,   ///< the call is done, and the node cannot know
  slowRequest,  ///< time passes before the call is done; the other threads of the node go on
  slowAnswer,   ///< time passes before the answer comes; the other threads of the node go on
  pause,        ///< the whole process stands still between the call and its answer
  crash         ///< the process dies between the call and its answer
};

/// Consequences of a fault beyond the call.
class WireEvents {
 public:
  virtual ~WireEvents() = default;
  /// Lets time pass while the call is under way.
  virtual void passDuringCall(Millis time) = 0;
  /// Lets time pass while the process stands still.
  virtual void passDuringPause(Millis time) = 0;
  /// Ends the process: no later call reaches the storage.
  virtual void die() = 0;
  /// Told of each call before it is made.
  virtual void beforeCall(std::string_view operation) = 0;
  /// Told of the begin and the end of the step in the storage.
  virtual void enterStorage(bool inside) = 0;
};

/// Confined to one thread.
class Wire {
 public:
  explicit Wire(WireEvents& events) : events_(events) {}

  /// Lets `times` calls of `operation` (of any operation, if empty) fail, from the `skipped`-th next call on.
  struct Plan {
    WireFault fault{};
    std::string operation;
    std::uint32_t skipped = 0;
    std::uint32_t times = 1;
    Millis time{0};
  };
  void plan(Plan plan) { plan_ = std::move(plan); }
  /// Refuses each call of `operation` (each call, if empty) until mend().
  void cut(std::string operation) {
    isCut_ = true;
    cutOperation_ = std::move(operation);
  }
  void mend() {
    isCut_ = false;
    plan_.times = 0;
  }
  /// Refuses each call for ever: the process is dead.
  void close() { isClosed_ = true; }
  /// Opens the way for a new process.
  void open() { isClosed_ = false; }
  bool isClosed() const { return isClosed_; }
  std::uint64_t faults() const { return faults_; }

  /// Makes a call of the storage, with the planned fault.
  template <class Call>
  auto call(std::string_view operation, Call&& make) {
    const bool hit = begin(operation);
    struct Inside {
      explicit Inside(WireEvents& of) : events(of) { events.enterStorage(true); }
      ~Inside() { events.enterStorage(false); }
      WireEvents& events;
    };
    auto result = [&] {
      const Inside inside(events_);
      return make();
    }();
    if (hit) end(operation);
    return result;
  }

 private:
  bool begin(std::string_view operation);
  void end(std::string_view operation);
  bool isHit(std::string_view operation);
  void refuseIfCut(std::string_view operation) const;

  WireEvents& events_;
  Plan plan_{{}, {}, 0, 0, Millis(0)};
  bool isCut_ = false;
  std::string cutOperation_;
  bool isClosed_ = false;
  bool isSlow_ = false;  // a call passes time: calls made meanwhile have no fault of their own
  std::uint64_t faults_ = 0;
};

/// The storage as the node sees it.
class WiredStorage final : public testkit::ForwardingStorage {
 public:
  WiredStorage(Storage& inner, Wire& wire)
      : ForwardingStorage(inner),
        jobs_(inner.jobs(), wire),
        leases_(inner.leases(), wire),
        nodes_(inner.nodes(), wire) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  NodeStore& nodes() override { return nodes_; }

 private:
  class Jobs final : public testkit::ForwardingJobs {
   public:
    Jobs(JobStore& inner, Wire& wire) : ForwardingJobs(inner), wire_(wire) {}
    InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override;
    std::optional<Job> find(const JobKey& key, std::uint64_t mostBytes) override;
    std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override;
    CancelResult cancel(const JobKey& key) override;
    RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override;
    std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override;
    EndpointCounts counts(std::string_view endpoint) override;

   private:
    Wire& wire_;
  };

  class Leases final : public testkit::ForwardingLeases {
   public:
    Leases(LeaseStore& inner, Wire& wire) : ForwardingLeases(inner), wire_(wire) {}
    ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                      std::uint64_t mostBytes) override;
    std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override;
    std::vector<LeaseState> states(std::span<const LeaseRef> leases) override;
    std::vector<QueuedEndpoint> queuedEndpoints() override;
    FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                        const std::optional<FusedClaim>& claim) override;
    SweepResult giveBack(std::span<const ReturnedJob> jobs) override;
    SweepResult sweep(std::size_t max) override;

   private:
    Wire& wire_;
  };

  class Nodes final : public testkit::ForwardingNodes {
   public:
    Nodes(NodeStore& inner, Wire& wire) : ForwardingNodes(inner), wire_(wire) {}
    Holder join(std::string_view name, const std::optional<JobKey>& culprit) override;
    BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override;
    void leave(const Holder& holder) override;
    WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override;
    std::vector<NodeInfo> nodes() override;

   private:
    Wire& wire_;
  };

  Jobs jobs_;
  Leases leases_;
  Nodes nodes_;
};

}  // namespace jobq::model
