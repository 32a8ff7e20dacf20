// The early begin of a file's way to the disk: the disk writes the first part of a large body while the next part is
// still copied into the cache of the system, and the sync behind the last part has less to wait for.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>

namespace jobq::sqlite {

/// A hint to the system without a promise: the sync alone makes a file durable and reports errors. Used by one thread.
class EarlyWriteback {
 public:
  /// `file` exists. Without a free descriptor the object has no effect.
  explicit EarlyWriteback(const std::filesystem::path& file) noexcept
      : descriptor_(::open(file.c_str(), O_WRONLY | O_CLOEXEC)) {}
  ~EarlyWriteback() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  EarlyWriteback(const EarlyWriteback&) = delete;
  EarlyWriteback& operator=(const EarlyWriteback&) = delete;

  /// Begins to write the bytes from `offset` on, `count` bytes, and does not wait for their end.
  void begin(std::size_t offset, std::size_t count) const noexcept {
    if (descriptor_ < 0) return;
    (void)::sync_file_range(descriptor_, static_cast<off64_t>(offset), static_cast<off64_t>(count),
                            SYNC_FILE_RANGE_WRITE);
  }

 private:
  const int descriptor_;
};

}  // namespace jobq::sqlite
