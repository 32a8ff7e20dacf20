// A copy of the database while the server works on it (Storage::backupTo).
#pragma once

#include <filesystem>
#include <stop_token>

#include "jobq/storage.h"

namespace jobq::sqlite {

/// Writes the content of the database `source` to `target`, which must not exist, by a read connection of its own:
/// neither the writer nor a checkpoint waits for it. Meanwhile its snapshot keeps the write-ahead log from being
/// emptied, so the log grows by what is written. The copy has no free pages, and can shrink (shrink.h) even when the
/// source cannot. Returns `written`, or `stopped` soon after `stop` is requested. Throws StorageError. Leaves a file
/// only when it is complete. Any thread; one call at a time for a target.
BackupResult writeBackup(const std::filesystem::path& source, const std::filesystem::path& target,
                         const std::stop_token& stop);

}  // namespace jobq::sqlite
