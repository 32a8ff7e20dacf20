// Room 6 (archive): remember it. The one contract that nodes share, and the only place where a job's state changes.
//
// Rules for every face and every verb
//  - Any number of threads at once; a storage that is shared also any number of processes.
//  - Each verb is one step: it happens whole or not at all, and when it returns, it is durable as the storage promises
//    (SQLite: on disk). A verb that throws StorageError changed nothing that a later call could see.
//  - A job of another endpoint, or past its expiry, is absent for every verb, whether swept yet or not.
//  - A change of state follows transitions.h or does not happen; the verb's result says which.
//  - Reports (finish, progress, chunks) name an attempt and change nothing unless the job is IN_PROGRESS under it.
//  - The step that makes a job terminal also writes the owed webhook, when the job has one, with its own snapshot of
//    the outcome (OutboxStore). This holds for finish, cancel and sweep alike.
//  - Time is the storage's clock, now(). Callers pass durations.
//  - Results belong to the caller; string_view and span arguments are valid for the call.
// sdk/testkit/storage_suite.h puts these sentences to a backend.
#pragma once

#include <filesystem>
#include <stop_token>
#include <utility>

#include "jobq/chunk_store.h"  // IWYU pragma: export
#include "jobq/error.h"
#include "jobq/job_store.h"     // IWYU pragma: export
#include "jobq/lease_store.h"   // IWYU pragma: export
#include "jobq/outbox_store.h"  // IWYU pragma: export
#include "jobq/plugin.h"
#include "jobq/record_store.h"  // IWYU pragma: export
#include "jobq/time.h"
#include "jobq/worker_store.h"  // IWYU pragma: export

namespace jobq {

/// What became of a copy of the storage.
enum class BackupResult {
  written,     ///< the file is complete
  stopped,     ///< the stop token ended it; there is no file
  unsupported  ///< this storage has no content that a file could hold; there is no file
};

/// Owns its faces: the references live as long as the storage. Opening (construction) migrates an older schema, and
/// marks the leases of a process that died as lost, so that sweep() puts their jobs back in line. Construction throws
/// StorageError or ConfigError; destruction ends every thread and closes cleanly.
class JOBQ_VISIBLE Storage : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::storage;

  virtual JobStore& jobs() = 0;
  virtual LeaseStore& leases() = 0;
  virtual ChunkStore& chunks() = 0;
  virtual OutboxStore& outbox() = 0;
  virtual WorkerStore& workers() = 0;
  virtual RecordStore& records() = 0;

  /// The only clock for leases, timeouts and expiry.
  virtual Instant now() = 0;

  /// Returns when the storage can take a write now; throws StorageError with the reason otherwise (`/readyz`).
  virtual void check() = 0;

  /// Writes a copy of the whole storage to `file`, while every other verb goes on.
  ///
  /// The copy is one moment: it holds each step that returned before the call, each later step whole or not at all, and
  /// nothing else. A storage that is opened on it goes on from there as after a crash. The content of large databases
  /// takes minutes; the storage may use more disk meanwhile, and no other verb waits for it.
  ///
  /// `file` does not exist, and its directory does; the storage makes it with mode 0600, and does not sync it. `stop`
  /// ends the call within a second. Returns what became of the file. Throws StorageError when the copy cannot be
  /// written, and leaves no file then. Any thread; one call at a time.
  /// The default is that of a storage that cannot be copied.
  [[nodiscard]] virtual BackupResult backupTo(const std::filesystem::path&, std::stop_token) {
    return BackupResult::unsupported;
  }
};

}  // namespace jobq
