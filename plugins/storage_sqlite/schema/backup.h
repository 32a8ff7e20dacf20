// A copy of the database while the server works on it (`Storage::backupTo`).
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "bodies/body_files.h"
#include "jobq/storage.h"

namespace jobq::sqlite {

/// Writes the content of the database `source` to `target`. The target must not exist. The bodies in `files` become
/// bodies in rows of the copy, so the copy is a single file; no file may be deleted during the call. The copy uses a
/// read connection of its own, so neither the writer nor a checkpoint waits for the copy. The snapshot of the copy
/// keeps the write-ahead log from being emptied meanwhile: the log grows by all bytes written.
///
/// The copy has no free pages, and can shrink (`shrink.h`) even when the source cannot.
///
/// The call writes no byte if the disk of `target` lacks room for the copy and kRoomForWrites.
///
/// Returns `written`, or `stopped` soon after `stop` is requested. Throws StorageError. Leaves a file only when the
/// file is complete. Any thread may call the function; two calls for the same target must not overlap.
BackupResult writeBackup(const std::filesystem::path& source, const BodyFiles& files,
                         const std::filesystem::path& target, const std::stop_token& stop);

/// Bytes that a copy leaves free for the jobs that are written meanwhile.
inline constexpr std::uint64_t kRoomForWrites = 256UL << 20;

/// Throws StorageError, with the bytes to free, if `available` bytes on the disk are too few for a copy of `bytes`.
void requireRoom(std::uint64_t bytes, std::uint64_t available);

}  // namespace jobq::sqlite
