// Copies of the storage for `POST /v1/backup`: made beside the data, one at a time, and gone when they were sent.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <variant>

#include "core/http/transport/body_file.h"
#include "jobq/storage.h"

namespace jobq {

/// Any thread. The storage outlives it, and it outlives each copy that it has made.
class Backups {
 public:
  /// The answers of make() that are no copy: another one is being made or sent; the storage cannot be copied; the
  /// client has gone, or stop() was called.
  struct Busy {};
  struct Unsupported {};
  struct Stopped {};
  using Result = std::variant<std::shared_ptr<const BodyFile>, Busy, Unsupported, Stopped>;

  /// `folder`: the data directory, which has to have room for the copy.
  Backups(Storage& storage, const std::filesystem::path& folder) : storage_(storage), file_(folder / "backup.tmp") {}

  /// Removes the copy that a server left when it died.
  void removeLeftover() noexcept;

  /// Copies the storage and returns the copy. The file has no name any more, so its space is free as soon as the last
  /// owner has let go of it; until then no other copy is begun. `gone`: ends the copying, because its client has left.
  /// Takes as long as the storage needs. Throws StorageError.
  Result make(const std::stop_token& gone);

  /// Ends the copying that runs, within a second; make() answers Stopped from now on. Copies that are being sent stay.
  void stop() noexcept { stopping_.request_stop(); }

 private:
  struct Copy;

  Storage& storage_;
  const std::filesystem::path file_;
  std::stop_source stopping_;
  std::atomic<bool> busy_ = false;
};

}  // namespace jobq
