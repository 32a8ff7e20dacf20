// The worker pools of a node by endpoint, and the list of pools to visit in a pass of the dispatcher. A task of a pass
// visits the pools with a change since the last visit by the task, and the pools with a time in the past. A pass costs
// nothing for a quiet endpoint. Plain state without threads, guarded by the mutex of WorkerPools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/workers/pool/worker_pool.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"

namespace jobq {

/// The tasks of a pass with visits to pools (`core/workers/pool/worker_supervisor.h`, `core/workers/dispatcher.h`).
enum class PoolTask : std::uint8_t { stuck = 1, release = 2, idle = 4, claim = 8, scaling = 16, plan = 32 };

/// A pool with the definition of the endpoint. The pool has the node's part in the numbers of workers.
class PoolSlot {
 public:
  PoolSlot(EndpointPtr wholeEndpoint, EndpointPtr part) : whole(std::move(wholeEndpoint)), pool(std::move(part)) {}

  /// Returns the id of the endpoint.
  const EndpointId& id() const { return whole->spec.id; }

  EndpointPtr whole;
  WorkerPool pool;

 private:
  friend class PoolTable;
  using DueSlots = std::multimap<Instant, PoolSlot*>;

  std::uint8_t pending_ = 0;                 // tasks without a visit since the last change
  std::optional<std::size_t> changedAt_{};   // place in PoolTable::changed_
  std::optional<DueSlots::iterator> due_{};  // place in PoolTable::due_
};

/// Any thread, one at a time. The addresses of the slots do not change.
class PoolTable {
 public:
  PoolTable() = default;
  PoolTable(const PoolTable&) = delete;
  PoolTable& operator=(const PoolTable&) = delete;

  /// Returns the slots by id of the endpoint.
  const std::map<EndpointId, PoolSlot>& all() const noexcept { return slots_; }

  /// Returns null for an endpoint without a pool.
  const PoolSlot* find(const EndpointId& endpoint) const;
  PoolSlot* find(const EndpointId& endpoint);

  /// Finds a slot for a change of the pool: each task visits the pool once more.
  PoolSlot* change(const EndpointId& endpoint);

  /// Adds a pool, as changed. `whole` and `part` are definitions of an endpoint without a pool here.
  void add(const EndpointPtr& whole, const EndpointPtr& part);

  /// Removes a pool without workers.
  void erase(const EndpointId& endpoint);

  /// Marks a slot as changed, or for a further visit by the task.
  void mark(PoolSlot& slot) noexcept;
  void mark(PoolSlot& slot, PoolTask task) noexcept;

  /// Ends the visit of the task: the pool waits for the next change or time.
  static void unmark(PoolSlot& slot, PoolTask task) noexcept;

  /// Returns the slots to visit in the order of the changes, and ends the visits (PoolVisits).
  std::vector<PoolSlot*> beginVisits(PoolTask task, Instant now);

  /// Plans the next tasks of the changed pools as of the first beginVisits() since the last call: a time between the
  /// two was too late for some task. Returns the earliest WorkerPool::nextTaskAt() of all pools.
  Instant nextTaskAt(Instant now);

  /// Returns the number of visits since the start. A visit by each of two tasks counts twice.
  std::uint64_t visits() const noexcept { return visits_; }

  /// Gives the job to the reserved worker. findRun() finds the attempt until endRun().
  void assignJob(PoolSlot& slot, const ClaimedJob& job);
  /// Called before the worker is without a job, or is gone.
  void endRun(PoolSlot& slot, const WorkerId& worker);
  /// Returns the slot with the attempt's worker; null if no worker here has the attempt.
  PoolSlot* findRun(const LeaseRef& lease);

 private:
  using Attempt = std::pair<JobId, std::uint32_t>;

  void markDue(Instant now);
  void plan(PoolSlot& slot, Instant at);

  std::map<EndpointId, PoolSlot> slots_;
  std::vector<PoolSlot*> changed_;      // with room for all slots: a mark allocates no memory
  PoolSlot::DueSlots due_;              // by WorkerPool::nextTaskAt(), as of the last plan
  std::optional<Instant> visitedFrom_;  // time of the first beginVisits() since the last plan
  std::map<Attempt, PoolSlot*> runs_;
  std::uint64_t visits_ = 0;
};

/// The visits by a task in a pass. The task visits the slots again whose visit was not begun, or was cut off by an
/// exception. One thread.
class PoolVisits {
 public:
  /// Takes the slots of PoolTable::beginVisits(). `table` outlives the object.
  PoolVisits(PoolTable& table, PoolTask task, std::vector<PoolSlot*> slots) noexcept
      : table_(table), task_(task), slots_(std::move(slots)) {}
  ~PoolVisits() {
    for (; at_ < slots_.size(); ++at_) table_.mark(*slots_[at_], task_);
  }
  PoolVisits(const PoolVisits&) = delete;
  PoolVisits& operator=(const PoolVisits&) = delete;

  /// Calls visit(table, slot) for each slot. A visit may erase the slot. Throws the exception of a visit.
  template <class Action>
  void makeAll(Action&& visit) {
    for (; at_ < slots_.size(); ++at_) visit(table_, *slots_[at_]);
  }

 private:
  PoolTable& table_;
  const PoolTask task_;
  const std::vector<PoolSlot*> slots_;
  std::size_t at_ = 0;  // of the current visit
};

}  // namespace jobq
