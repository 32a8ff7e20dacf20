// Large bodies: an input or an output of more than kMostInRow bytes is a file in `<data.dir>/bodies`, and the row of
// the body names the file. Large bodies therefore neither pass the write-ahead log nor keep the writer busy.
//
// A file is named by its number, the primary key of its row in `body_file`. Files never change:
// - The caller's thread writes and syncs the file and its entry in the folder (`new_body.h`). Only then the writer
//   inserts the row of the file and the row of the body. A committed row has its file, also after a loss of power.
// - The column `body_file.owners` counts the rows that name the file: the input or output of a job, and the bodies of
//   its owed webhooks. Triggers lower `owners` by one for each deleted row (`schema_steps.cpp`).
// - A file without owners is deleted after the deletion of its row is on disk (`body_sweep.h`).
// - A file may have no row after a crash, after a loss of power, or if an older copy of the database was restored
//   beside newer files. The next opening of the storage deletes the file.
//
// A number is not used again, not even after a restart, because the storage keeps the highest number. A missing file
// therefore means that the body was removed meanwhile, or that the folder is damaged.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "disk/vfs_file.h"
#include "jobq/error.h"
#include "statement.h"

namespace jobq::sqlite {

/// Bytes up to which a body is stored in its row.
inline constexpr std::size_t kMostInRow = 256UL << 10;

/// Name of the folder beside the database file.
inline constexpr char kBodiesFolder[] = "bodies";

/// The file of a body, or no file if the body is in its row.
struct BodyFile {
  std::int64_t number = 0;  ///< 0: the body is in its row
  std::uint64_t size = 0;   ///< in bytes

  bool isFile() const noexcept { return number != 0; }
};

/// Returns the file that the current row names: the number is in `column`, and the size in the next column.
BodyFile bodyFileAt(const CurrentRow& row, int column);

/// A body file cannot be read, because the file or its disk has a fault. A later read may succeed, unless the error is
/// a DamagedBody. The message names the file.
class UnreadableBody : public StorageError {
 public:
  using StorageError::StorageError;
};

/// A body file is missing or cut: no later read succeeds. The message names the file and the remedy.
class DamagedBody final : public UnreadableBody {
 public:
  using UnreadableBody::UnreadableBody;
};

/// The files of the folder. Any thread may call the methods.
class BodyFiles {
 public:
  /// Makes the folder beside the database file `database`, and deletes the files without a row. The connection must
  /// have the current schema, and only the constructor uses the connection. Throws StorageError.
  BodyFiles(Connection& connection, const std::filesystem::path& database);

  /// Writes `bytes` to a new file, and syncs the file and its entry in the folder. Throws SqliteError, and leaves no
  /// file then.
  BodyFile write(std::string_view bytes);

  /// Returns the content of the file, or no value if the file is missing. Throws DamagedBody, UnreadableBody, or
  /// StorageError or std::bad_alloc for a fault of this machine (`jobq/machine_fault.h`).
  std::optional<std::string> read(const BodyFile& file) const;

  /// Returns true if the content of the file is `bytes`. Throws as read() does, and DamagedBody if the file is missing.
  bool isEqual(const BodyFile& file, std::string_view bytes) const;

  /// Tells the system that the synced file will not be read soon. The memory of its pages becomes free for other files,
  /// and the pages of the database stay in memory. A failure has no effect.
  void dropFromCache(const BodyFile& file) const noexcept;

  /// Deletes the file. A failure leaves the file for the next opening of the storage.
  void remove(std::int64_t number) const noexcept;

  /// Returns the error for a missing file.
  DamagedBody missingError(const BodyFile& file) const;

 private:
  friend class BodyReader;

  std::filesystem::path pathOf(std::int64_t number) const { return folder_ / std::to_string(number); }
  /// Opens the file into `opened` and checks the size. Returns false if the file is missing.
  bool open(const BodyFile& file, VfsFile& opened) const;
  /// Throws the error of a failed read of the file; `result` is a code of SQLite.
  void checkRead(int result, const BodyFile& file) const;
  /// Returns the highest number of a file in the folder, or 0.
  std::int64_t removeFilesWithoutRow(Connection& connection) const;

  const std::filesystem::path database_;  // a new file gets the mode of the database file
  const std::filesystem::path folder_;
  sqlite3_vfs* const vfs_;
  std::atomic<std::int64_t> next_;
};

/// Reads a body file in parts, with 64 KB of memory. Not thread-safe. The files outlive the object.
class BodyReader {
 public:
  explicit BodyReader(const BodyFiles& files);

  /// Opens the file, once. Returns false if the file is missing. Throws as BodyFiles::read() does.
  bool open(const BodyFile& file);

  /// Returns the offset of the next part in the file, in bytes.
  std::uint64_t offset() const noexcept { return offset_; }
  /// Returns the next part, valid until the next call; no bytes at the end. Throws as BodyFiles::read() does.
  std::string_view readPart();

 private:
  const BodyFiles& files_;
  BodyFile file_;
  VfsFile opened_;
  std::uint64_t offset_ = 0;
  std::vector<char> buffer_;
};

}  // namespace jobq::sqlite
