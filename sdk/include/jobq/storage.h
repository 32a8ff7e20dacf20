// Contract of the storage stage: the storage keeps jobs, leases, chunks, owed webhooks, nodes and records. The
// storage is the only contract between nodes, and the state of a job changes nowhere else.
//
// Rules for each operation of each store:
//  - Any number of threads may call at once. Any number of processes may call a shared storage.
//  - An operation is one step, unless its contract names several: the step happens whole or not at all. When the
//    operation returns, the step and all earlier steps are as durable as the storage guarantees (SQLite: on disk).
//  - The contract of an operation may say "Unsynced". When such an operation returns, the step survives the death of
//    the process. A loss of power may undo the step, and then undoes all later unsynced steps too. Any other
//    operation that changes the storage makes all earlier steps durable. Only operations whose result stays on the
//    machine are unsynced, with two exceptions: remote workers are told of their claims, and numbers of jobs
//    (JobStore::counts()) count unsynced steps too, as do the reads of which LeaseStore::finish() says that they may
//    follow an end earlier. A storage may make unsynced operations as durable as the others.
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
//    outcome (outbox_store.h). The rule holds for finish, cancel, sweep and giveBack alike.
//  - The questions that a node asks all the time (LeaseStore::queuedEndpoints() and sweep(), OutboxStore::dueHosts()
//    and abandonOwed(), RecordStore::changedSince()) may miss what another process has changed within the last second,
//    so that a storage can answer several of them with one look. They never miss what this process has changed.
//  - An operation, or an argument, whose contract says "Needs Capability::..." is used only if capabilities() has it.
//  - The clock of the storage, now(), decides about time. Callers pass durations in milliseconds.
//  - The caller owns the results. Arguments of type string_view and span are valid during the call only; a storage
//    keeps copies.
//
// The conformance suite sdk/testkit/storage_suite.h checks these rules for each storage.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <vector>

#include "jobq/capabilities.h"  // IWYU pragma: export
#include "jobq/chunk_store.h"   // IWYU pragma: export
#include "jobq/error.h"
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
  written,  ///< the file is complete
  stopped   ///< the stop token ended the copy; no file exists
};

/// Result of Storage::insertAndClaim().
struct InsertedAndClaimed {
  InsertResult inserted;
  std::vector<ClaimedJob> claimed;  ///< as LeaseStore::claim() returns them; not necessarily the inserted job
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

  /// Returns what the storage has of the operations that a storage may lack. The value is constant. Any thread; no
  /// exception.
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;

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
  /// thread may call, but no two calls run at once. Needs Capability::backup.
  [[nodiscard]] virtual BackupResult backupTo(const std::filesystem::path& /*file*/, std::stop_token /*stop*/) {
    throwLacking("Storage::backupTo()");
  }

  /// Inserts `job` as JobStore::insert() does, and claims as LeaseStore::claim() does, in one step. `claim` names the
  /// endpoint of `job` and at least one worker. The caller of `job` waits for its end, and workers are idle. Needs
  /// Capability::insertAndClaim. The claim leaves a job queued whose input is over kMostFusedInput. A new job that
  /// meets no queue is claimed with an input of any size, because its input is in memory; an expired job counts as
  /// queued until a sweep has freed it.
  ///
  /// Unsynced: no caller has learnt of the job. The storage makes the job durable before a method of ChunkStore, or
  /// JobStore::find(), list() or findByIdempotencyKey(), returns a part of the job or its id, and within about 5 ms,
  /// because a handler that runs for longer may tell others of its job. A loss of power before undoes the whole step.
  /// The first job that a Duplicate of this call names may not be durable either: the caller reads it with find()
  /// before the id is told to anyone.
  ///
  /// Throws as insert() does. After OutcomeUnknown the caller repeats insert() with `job`, which is unchanged, and asks
  /// LeaseStore::claimed() for the jobs of claim.id. Any thread.
  [[nodiscard]] virtual InsertedAndClaimed insertAndClaim(JobSpec&& /*job*/, const QueuePolicy& /*policy*/,
                                                          const std::optional<Idempotency>& /*idempotency*/,
                                                          const FusedClaim& /*claim*/) {
    throwLacking("Storage::insertAndClaim()");
  }
};

}  // namespace jobq
