// Random work for a storage: a sequence of verbs whose arguments are numbers, so that it can be printed, repeated from
// its seed, and shortened without losing its meaning: whatever remains names jobs and leases that exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

enum class Action : std::uint8_t {
  insert,
  claim,
  claimTimed,
  finish,
  fail,
  progress,
  append,
  log,
  release,
  renew,
  cancel,
  requeue,
  find,
  counts,
  list,
  take,
  read,
  setTtl,
  settle,
  reschedule,
  recordAttempt,
  replay,
  deliveries,
  advance,
  purge,
  createRecord,
  updateRecord,
  removeRecord,
  findRecord,
  listRecords,
  changedSince,
  // These concern all endpoints, or take one away.
  sweep,
  claimDue,
  abandonOwed,
  remove,
};
inline constexpr int kActionsOfOneEndpoint = static_cast<int>(Action::sweep);
inline constexpr bool isOfRecords(Action action) { return action >= Action::createRecord && action <= Action::changedSince; }
inline constexpr int kActions = static_cast<int>(Action::remove) + 1;

struct Operation {
  Action action{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Operation& operation);

/// The same for the same seed, on every machine. `verbs`: kVerbs, or kActionsOfOneEndpoint.
std::vector<Operation> randomOperations(std::uint64_t seed, std::size_t count, int verbs = kActions);

/// Each group of jobs gets its turn: the policy that asks most of a storage.
class Turns final : public QueuePolicy {
 public:
  std::string group(const JobSpec& job) const override { return job.apiKeyId; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState& state) const override;
};

/// Plays operations on a storage. What it knows of jobs, leases and versions outlives a reopening.
class Player {
 public:
  /// `name` begins the ids of its jobs, the names of its endpoints and the kinds of its records. The jobs' turns are
  /// settled by Turns, or by `policy`, which has to outlive it.
  Player(std::string name, testkit::ManualClock& clock, const QueuePolicy* policy = nullptr)
      : name_(std::move(name)), clock_(clock), policy_(policy != nullptr ? *policy : turns_) {}

  /// Throws what the storage throws.
  void play(Storage& storage, const Operation& operation);

 private:
  JobSpec spec(std::uint32_t number, std::uint32_t kind);
  void playOnLease(Storage& storage, const Operation& operation);
  void playOnJob(Storage& storage, const Operation& operation);
  void playOnEndpoint(Storage& storage, const Operation& operation);
  void playOnDelivery(Storage& storage, const Operation& operation);
  void claimDeliveries(OutboxStore& outbox, const Operation& operation);
  void playOnRecord(RecordStore& records, const Operation& operation);
  void updateRecord(RecordStore& records, Record record, std::uint32_t choice);
  void claim(Storage& storage, const Operation& operation, const Holder& holder);
  EndpointId endpoint(std::uint32_t number) const { return name_ + "-ep" + std::to_string(number % 2); }

  const std::string name_;
  testkit::ManualClock& clock_;
  const Turns turns_;
  const QueuePolicy& policy_;
  std::vector<JobKey> jobs_;
  std::vector<LeaseRef> leases_;         // stale ones stay: they are the most interesting
  std::vector<DeliveryClaim> claims_;    // the same
  std::vector<std::uint64_t> versions_;  // of records, stale ones as well
  std::vector<std::uint64_t> moments_;   // versions from which to ask for changes again
};

}  // namespace jobq::model
