// Contract of the storage stage: the storage keeps jobs, leases, chunks, owed webhooks, nodes and records. The
// storage is the only contract between nodes, and the state of a job changes nowhere else.
//
// Rules for each operation of each store:
//  - Any number of threads may call at once. Any number of processes may call a shared storage.
//  - An operation is one step, unless its contract names several: the step happens whole or not at all. When the
//    operation returns, the step and all earlier steps are as durable as the storage guarantees (SQLite: on disk).
//  - The contract of an operation may say "Unsynced". When such an operation returns, the step survives the death of
//    the process. A loss of power may undo the step, and then undoes all later unsynced steps too, unless an operation
//    that is not unsynced has changed the storage since. Only operations whose result stays on the machine are
//    unsynced, with two exceptions: remote workers are told of their claims, and numbers of jobs (JobStore::counts())
//    count unsynced steps too, as do the reads of which LeaseStore::finishUnsynced() says that they may follow an end
//    earlier. A storage may make unsynced operations as durable as the others.
//  - An operation throws StorageError if the storage cannot do the step. No later call sees any effect of the failed
//    step. The only exception to this rule is OutcomeUnknown (error.h): a storage behind a connection throws it when
//    the connection broke before the answer came.
//  - The contract of an operation may say "Repeatable". After OutcomeUnknown the caller may repeat such a call with the
//    same arguments, any number of times. All calls together have the effect of one call, and each returns the answer
//    that the first call gave or would have given, unless the job or the record has changed since; the contract says
//    how the storage recognises a repeated call. Where a call counts a time from now, the time of the last call counts.
//    The storage makes sure that the step of an unanswered call has happened, or never happens, before a repeated call
//    takes effect. "Repeatable, but for ..." names what a repeated call does or answers otherwise. LeaseStore::claim(),
//    LeaseStore::sweep() and OutboxStore::claimDue() change the storage and are not repeatable; their contracts say
//    what a lost answer means.
//  - A job of another endpoint is absent for every operation. A job past its expiry is absent too, also before a sweep
//    has freed the job's space.
//  - A change of state follows transitions.h or does not happen; the result of the operation says which.
//  - A report (finish, progress, chunks, log lines) names an attempt. The report changes nothing unless the job is
//    IN_PROGRESS under exactly that attempt.
//  - The step that ends a job also writes the owed webhook of the job, if the job has a webhook, with a snapshot of the
//    outcome (outbox_store.h). The rule holds for finish, cancel, sweep and lose alike.
//  - The questions that a node asks all the time (LeaseStore::queuedEndpoints() and sweep(), OutboxStore::dueHosts()
//    and abandonOwed(), RecordStore::changedSince()) may miss what another process has changed within the last second,
//    so that a storage can answer several of them with one look. They never miss what this process has changed.
//  - The clock of the storage, now(), decides about time. Callers pass durations in milliseconds.
//  - The caller owns the results. Arguments of type string_view and span are valid during the call only; a storage
//    keeps copies.
//
// The conformance suite sdk/testkit/storage_suite.h checks these rules for each storage.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/chunk_store.h"  // IWYU pragma: export
#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"     // IWYU pragma: export
#include "jobq/lease_store.h"   // IWYU pragma: export
#include "jobq/node_store.h"    // IWYU pragma: export
#include "jobq/outbox_store.h"  // IWYU pragma: export
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/record_store.h"  // IWYU pragma: export
#include "jobq/time.h"

namespace jobq {

/// Result of Storage::backupTo().
enum class BackupResult {
  written,     ///< the file is complete
  stopped,     ///< the stop token ended the copy; no file exists
  unsupported  ///< the content of this storage cannot be kept in a file; no file exists
};

/// Result of Storage::insertAndClaim().
struct InsertedAndClaimed {
  InsertResult inserted;
  std::vector<ClaimedJob> claimed;  ///< as LeaseStore::claim() returns them; not necessarily the inserted job
};

/// The first attempt of a job, which began before the storage had the job (Storage::insertRun()).
struct FirstRun {
  WorkerId worker;
  Holder holder;  ///< the life of the node of `worker`
  Millis age{0};  ///< time since the attempt began, at least 0
};

/// Greatest input in bytes with which Storage::insertLater() does not block.
inline constexpr std::size_t kLaterInput = 64UL << 10;

/// Receives the result of one Storage::insertLater(). The storage calls exactly one of the two functions, once, on any
/// thread, perhaps before insertLater() returns, and destroys the object afterwards. Neither function may block, call
/// the storage, or throw.
class JOBQ_VISIBLE InsertReceiver {
 public:
  virtual ~InsertReceiver() = default;

  /// The insert has ended as JobStore::insert() returns.
  virtual void inserted(InsertResult result) noexcept = 0;
  /// The insert has failed with an exception that JobStore::insert() throws.
  virtual void failed(std::exception_ptr error) noexcept = 0;
};

/// A storage plugin with its six stores.
///
/// Construction opens the storage and migrates an older schema. The server then begins a life of its node
/// (NodeStore::join), which ends the leases of its dead process. Construction throws ConfigError for a bad setting,
/// OutcomeUnknown if the storage cannot be reached yet (the server then repeats it), and StorageError otherwise.
/// Destruction ends every thread of the storage and closes the storage cleanly; no call may be under way then.
class JOBQ_VISIBLE Storage : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::storage;

  /// The six stores. The storage owns the stores, and the references are valid as long as the storage. Any thread; no
  /// exception.
  virtual JobStore& jobs() = 0;
  virtual LeaseStore& leases() = 0;
  virtual ChunkStore& chunks() = 0;
  virtual OutboxStore& outbox() = 0;
  virtual NodeStore& nodes() = 0;
  virtual RecordStore& records() = 0;

  /// Returns the time for which a life of a node lasts after its last beat (node_store.h), at least 10 s; or an empty
  /// optional for a storage that a single process uses: lives do not end by time, and nodes need not beat. The value
  /// is constant. Any thread; no exception.
  [[nodiscard]] virtual std::optional<Millis> leaseLife() const noexcept { return std::nullopt; }

  /// Returns the present time of the storage: the only clock for leases, timeouts and expiry. The hosts of the nodes
  /// may have other clocks, so answers for callers who measure time carry durations. Any thread.
  virtual Instant now() = 0;

  /// Checks that the storage can take a write now, for `/readyz`, without writing a job. Throws StorageError with the
  /// reason if the storage cannot. Any thread.
  virtual void check() = 0;

  /// Writes a copy of the whole storage to `file` while all other operations go on.
  ///
  /// The copy shows the storage at one moment. Each step that returned before the call is in the copy; each later step
  /// is in the copy whole or not at all. A storage opened on the copy continues as after a crash. The copy of a large
  /// database takes minutes. The storage may use more disk meanwhile, and no other operation waits for the copy.
  ///
  /// The parameter `file` names a file that does not exist, in a directory that exists; the storage creates the file
  /// with mode 0600 and does not sync the file. A request on the parameter `stop` ends the call within a second.
  /// Returns the state of the file. Throws StorageError if the copy cannot be written, and leaves no file then. Any
  /// thread may call, but no two calls run at once. The default implementation is for storages without a copy: returns
  /// BackupResult::unsupported.
  [[nodiscard]] virtual BackupResult backupTo(const std::filesystem::path&, std::stop_token) {
    return BackupResult::unsupported;
  }

  /// Inserts `job` as JobStore::insert() does, and claims for `want` as LeaseStore::claim() does, in one step. `want`
  /// names the endpoint of `job` and at least one worker. The caller of `job` waits for its end, and workers are idle.
  /// The claim leaves a job queued whose input is over kMostFusedInput. A new job that meets no queue is claimed with
  /// an input of any size, because its input is in memory; an expired job counts as queued until a sweep has freed it.
  ///
  /// Unsynced: nobody was told of the job. The storage makes the job durable before a method of ChunkStore, or
  /// JobStore::find(), list() or findByIdempotencyKey(), returns a part of the job or its id, and within about 5 ms,
  /// because a handler that runs for longer may tell others of its job. A loss of power before undoes the whole step.
  /// The first job that a Duplicate of this call names may not be durable either: the caller reads it with find()
  /// before the id is told to anyone.
  ///
  /// Returns no value and changes nothing if the storage has no such step, as the default implementation does; the
  /// storage then returns no value for every call. Throws as insert() does. After OutcomeUnknown the caller repeats
  /// insert() with `job`, which is unchanged, and asks LeaseStore::claimed() for the jobs of the claim `id`. Any
  /// thread.
  [[nodiscard]] virtual std::optional<InsertedAndClaimed> insertAndClaim(JobSpec&&, const QueuePolicy&,
                                                                         const std::optional<Idempotency>&,
                                                                         const ClaimWant&, const Holder&, CallId) {
    return std::nullopt;
  }

  /// Records the outcome of an attempt as LeaseStore::finish() does, and claims for `want` as LeaseStore::claim() does,
  /// in one step. `want` names the endpoint and the worker of the attempt, which is free with this step. The claim is
  /// made for a stale attempt too, and leaves a job queued whose input is over kMostFusedInput. As durable as finish().
  ///
  /// Returns no value and changes nothing if the storage has no such step, as the default implementation does; the
  /// storage then returns no value for every call. Throws StorageError. A storage that may throw OutcomeUnknown has no
  /// such step. Any thread.
  [[nodiscard]] virtual std::optional<FinishedAndClaimed> finishAndClaim(const LeaseRef&, const Outcome&,
                                                                         const ClaimWant&, const Holder&, CallId) {
    return std::nullopt;
  }

  /// Since ABI minor 3. Returns true if the storage has insertRun(). A storage that several processes share, or that
  /// may throw OutcomeUnknown, has no such step. The value is constant. Any thread; no exception.
  [[nodiscard]] bool insertsRuns() const noexcept { return abiMinor() >= 3 && doInsertsRuns(); }

  /// Since ABI minor 3. Stores a job whose first attempt has begun already, in one step. The parameter `run` names the
  /// attempt, which has the number 1.
  ///
  /// The job is afterwards as if JobStore::insert() and a claim for `run.worker` had happened `run.age` ago, although
  /// other jobs may wait: its submission, its time in the queue and its start are that moment. The queue policy is
  /// asked for a rank as by insert(). Without an `outcome` (null) the job is IN_PROGRESS. With an `outcome` the job has
  /// ended with this call, as by LeaseStore::finish(), and owes its webhook. LeaseStore::claimed() never names the job.
  ///
  /// The arguments are valid during the call. As durable as finish(). Throws StorageError, also if insertsRuns() is
  /// false, if a job has the id already, if the ttl of the job is over, and without an outcome if the life of
  /// `run.holder` has ended. Any thread.
  void insertRun(const JobSpec& job, const QueuePolicy& policy, const FirstRun& run, const Outcome* outcome) {
    if (!insertsRuns()) throw StorageError("this storage cannot store a job whose run has begun");
    doInsertRun(job, policy, run, outcome);
  }

  /// Since ABI minor 4. Returns true if the storage has insertLater(). A storage that may throw OutcomeUnknown has no
  /// such operation. The value is constant. Any thread; no exception.
  [[nodiscard]] bool insertsLater() const noexcept { return abiMinor() >= 4 && doInsertsLater(); }

  /// Since ABI minor 4. Does what JobStore::insert() does, and returns before the step: one thread inserts many jobs,
  /// and the storage takes them together. `receiver` gets the result when the job is as durable as behind insert().
  /// Blocks for microseconds if the input has at most kLaterInput bytes, and as insert() does otherwise. `policy` lives
  /// as long as `receiver`. Throws std::bad_alloc, and inserts nothing then; every other error goes to `receiver`, also
  /// if insertsLater() is false. Any thread.
  void insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                   std::unique_ptr<InsertReceiver> receiver) {
    if (insertsLater()) return doInsertLater(std::move(job), policy, std::move(idempotency), std::move(receiver));
    receiver->failed(std::make_exception_ptr(StorageError("this storage cannot insert a job later")));
  }

 private:
  /// Implements insertsRuns().
  [[nodiscard]] virtual bool doInsertsRuns() const noexcept { return false; }
  /// Implements insertRun(). Called only if doInsertsRuns() returns true.
  virtual void doInsertRun(const JobSpec&, const QueuePolicy&, const FirstRun&, const Outcome*) {}
  /// Implements insertsLater().
  [[nodiscard]] virtual bool doInsertsLater() const noexcept { return false; }
  /// Implements insertLater(). Called only if doInsertsLater() returns true.
  virtual void doInsertLater(JobSpec&&, const QueuePolicy&, std::optional<Idempotency>&&,
                             std::unique_ptr<InsertReceiver>) {}
};

}  // namespace jobq
