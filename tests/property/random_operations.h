// Random work for a storage: a sequence of operations with numbers as arguments. The sequence can be printed, repeated
// from the seed, and shortened without a change of meaning: the remaining operations name existing jobs and leases.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

enum class Action : std::uint8_t {
  insert,
  insertAndClaim,
  insertBegun,
  claim,
  finish,
  fail,
  progress,
  append,
  log,
  release,
  lose,
  states,
  cancel,
  requeue,
  find,
  counts,
  list,
  consume,
  read,
  setTtl,
  finishDelivery,
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
  // Operations on all endpoints, or the removal of one.
  sweep,
  claimDue,
  abandonOwed,
  remove,
  join,
};
inline constexpr int kActionsOfOneEndpoint = static_cast<int>(Action::sweep);
inline constexpr bool isOfRecords(Action action) {
  return action >= Action::createRecord && action <= Action::changedSince;
}
inline constexpr int kActions = static_cast<int>(Action::join) + 1;

struct Operation {
  Action action{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Operation& operation);

/// Returns the same operations for the same seed on every machine. `actions` is kActions or kActionsOfOneEndpoint.
std::vector<Operation> randomOperations(std::uint64_t seed, std::size_t count, int actions = kActions);

/// Serves the groups of jobs in turn: the most demanding policy for a storage.
class Turns final : public QueuePolicy {
 public:
  std::string group(const JobSpec& job) const override { return job.apiKeyId; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState& state) const override {
    return std::max(state.lastRank.value_or(-1) + 1, state.lowestWaiting.value_or(0));
  }
};

/// Plays operations on a storage. The known jobs, leases and versions outlive a reopening of the storage.
class Player {
 public:
  /// `name` begins the ids of the jobs, the names of the endpoints and the kinds of the records. The order of jobs
  /// comes from Turns, or from `policy`, which must outlive the player.
  Player(std::string name, testkit::ManualClock& clock, const QueuePolicy* policy = nullptr)
      : name_(std::move(name)), clock_(clock), policy_(policy != nullptr ? *policy : turns_) {}

  /// Throws the exceptions of the storage.
  void play(Storage& storage, const Operation& operation);

  /// Forgets how many chunks and log lines each attempt has reported. A loss of power may undo reports, and the workers
  /// with the counts stopped with the machine: a count above the real number would leave chunks or lines out.
  void losePower() {
    nextChunks_.clear();
    nextLines_.clear();
  }

 private:
  JobSpec spec(std::uint32_t number, std::uint32_t kind);
  void playOnLease(Storage& storage, const Operation& operation);
  void playOnJob(Storage& storage, const Operation& operation);
  void playOnEndpoint(Storage& storage, const Operation& operation);
  void playOnDelivery(Storage& storage, const Operation& operation);
  void claimDeliveries(OutboxStore& outbox, const Operation& operation);
  void playOnRecord(RecordStore& records, const Operation& operation);
  CallId idOfChange(const Operation& operation);
  void updateRecord(RecordStore& records, Record record, std::uint32_t choice);
  void claim(Storage& storage, const Operation& operation);
  void insert(Storage& storage, const Operation& operation);
  /// Returns false if the storage has no such step.
  bool insertAndClaim(Storage& storage, const Operation& operation, const JobSpec& job,
                      const std::optional<Idempotency>& once);
  /// Repeats the last insert(), as after a lost answer. The id of an absent job may be taken: no repetition then.
  void repeatInsert(Storage& storage);
  void append(Storage& storage, const LeaseRef& lease, const Operation& operation);
  void appendLog(Storage& storage, const LeaseRef& lease, const Operation& operation);
  /// Reports an outcome, and repeats the report now and then, as after a lost answer. Half of the reports claim a job.
  void finish(Storage& storage, const LeaseRef& lease, const Outcome& outcome, const Operation& operation);
  /// Returns false if the storage has no such step.
  bool finishAndClaim(Storage& storage, const LeaseRef& lease, const Outcome& outcome, bool needsSync);
  EndpointId endpoint(std::uint32_t number) const { return name_ + "-ep" + std::to_string(number % 2); }

  const std::string name_;
  testkit::ManualClock& clock_;
  const Turns turns_;
  const QueuePolicy& policy_;
  struct Submission {
    JobSpec job;
    std::optional<Idempotency> idempotency;
  };
  std::optional<Submission> lastSubmission_;
  std::vector<JobKey> jobs_;
  std::vector<LeaseRef> leases_;  // stale leases stay, as the most interesting cases
  CallId lastClaim_ = 0;
  CallId lastConsume_ = 1'000'000;
  CallId lastChange_ = 2'000'000;
  std::map<std::pair<JobId, std::uint32_t>, std::uint64_t> nextChunks_;  // by attempt
  std::map<JobId, std::uint64_t> nextLines_;
  std::vector<DeliveryClaim> claims_;    // stale claims stay as well
  std::vector<std::uint64_t> versions_;  // versions of records, stale versions as well
  std::vector<std::uint64_t> moments_;   // versions for later questions about changes
};

}  // namespace jobq::model
