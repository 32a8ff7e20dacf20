// A storage in front of two others: the real storage and the model. Every operation except summaries and
// queuedEndpoints goes to both, and a difference between the answers is thrown as a Disagreement. The user of the
// storage, a test or the core, does not notice the judge. `tests/property/comparison.h` has the rule for failing
// operations.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comparison.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "judged_stores.h"
#include "storage_model.h"

namespace jobq::model {

/// The steps of the storage across several stores. Confined to one thread at a time.
class JudgedSteps : public Storage {
 public:
  Capabilities capabilities() const noexcept override {
    Capabilities judged{Capability::insertBegun, Capability::insertLater, Capability::insertAndClaim,
                        Capability::finishAndClaim, Capability::finishUnsynced};
    judged.bits &= compared_.real().capabilities().bits;
    return judged;
  }
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) override {
    return jobs_.insertAndClaim(std::move(job), policy, idempotency, claim);
  }

 protected:
  explicit JudgedSteps(std::shared_ptr<Storage> real) : compared_(std::move(real)) {}

  Comparison compared_;
  JudgedJobs jobs_{compared_};
  JudgedLeases leases_{compared_};
};

/// Confined to one thread at a time. The beats of workers pass through, because beats belong to no job. Other threads
/// may store records of other kinds meanwhile.
class Judge final : public JudgedSteps {
 public:
  /// Null means not open yet.
  explicit Judge(std::shared_ptr<Storage> real);
  ~Judge() override;

  /// Replaces the dead process, which had the storage open, by a new process with `real`.
  void reopen(std::shared_ptr<Storage> real, FormerEnd end) { compared_.reopen(std::move(real), end); }
  void close() { compared_.close(); }

  /// Notes in the model a life of the node begun on another way to the same storage.
  void follow(const Holder& life) { compared_.follow(life); }

  /// Compares every value open to reading; throws Disagreement.
  void inspect();

  /// Returns the first disagreement; empty without any.
  const std::string& disagreement() const { return compared_.disagreement(); }
  const Comparison& compared() const noexcept { return compared_; }

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  NodeStore& nodes() override { return nodes_; }
  RecordStore& records() override { return records_; }
  Instant now() override { return compared_.real().now(); }
  void check() override {
    compared_.real().check();
    compared_.noteSynced();
  }

 private:
  JudgedChunks chunks_{compared_};
  JudgedNodes nodes_{compared_};
  JudgedOutbox outbox_{compared_};
  JudgedRecords records_{compared_};
};

}  // namespace jobq::model
