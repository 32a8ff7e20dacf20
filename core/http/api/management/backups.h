// Copies of the storage for `POST /v1/backup`. A copy is made in the data directory, one at a time, and is deleted
// after sending.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <variant>

#include "core/http/api/body_file.h"
#include "jobq/storage.h"

namespace jobq {

/// Makes copies of the storage. Any thread may call the functions. The storage outlives the Backups, and the Backups
/// outlive each copy.
class Backups {
 public:
  /// Results of make() without a copy: another copy is being made or sent (Busy); the storage cannot be copied
  /// (Unsupported); the client has left or stop() was called (Stopped).
  struct Busy {};
  struct Unsupported {};
  struct Stopped {};
  using MakeResult = std::variant<std::shared_ptr<const BodyFile>, Busy, Unsupported, Stopped>;

  /// `folder` is the data directory and needs room for the copy.
  Backups(Storage& storage, const std::filesystem::path& folder) : storage_(storage), file_(folder / "backup.tmp") {}

  /// Removes the copy left behind by a server that died.
  void removeLeftover() noexcept;

  /// Copies the storage and returns the copy. Blocks as long as the storage needs. The file has no name any more, so
  /// its space is free as soon as its last owner is destroyed; until then make() returns Busy. A stop request on `gone`
  /// (the client has left) ends the copying. Throws StorageError.
  MakeResult make(const std::stop_token& gone);

  /// Ends a running copy within a second; from then on make() returns Stopped. A copy being sent is not interrupted.
  void stop() noexcept { stopping_.request_stop(); }

 private:
  struct Copy;

  Storage& storage_;
  const std::filesystem::path file_;
  std::stop_source stopping_;
  std::atomic<bool> busy_ = false;
};

}  // namespace jobq
