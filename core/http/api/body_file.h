// An open file with the bytes of an answer's body.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace jobq {

/// Owns the descriptor. One thread at a time.
class BodyFile {
 public:
  /// Takes ownership of `descriptor`. `size` is the file's size in bytes.
  BodyFile(int descriptor, std::uint64_t size) noexcept : descriptor_(descriptor), size_(size) {}
  ~BodyFile() { ::close(descriptor_); }
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;

  /// Returns the descriptor. The file position is the beginning until the first read.
  int descriptor() const noexcept { return descriptor_; }
  /// Returns the file's size in bytes.
  std::uint64_t size() const noexcept { return size_; }

 private:
  const int descriptor_;
  const std::uint64_t size_;
};

}  // namespace jobq
