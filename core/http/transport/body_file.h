// An open file whose bytes are sent as an answer's body.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace jobq {

/// Owns the descriptor. One thread at a time.
class BodyFile {
 public:
  BodyFile(int descriptor, std::uint64_t size) noexcept : descriptor_(descriptor), size_(size) {}
  ~BodyFile() { ::close(descriptor_); }
  BodyFile(const BodyFile&) = delete;
  BodyFile& operator=(const BodyFile&) = delete;

  /// Returns the descriptor, whose place in the file is its beginning until it is read.
  int descriptor() const noexcept { return descriptor_; }
  /// Returns the file's size in bytes.
  std::uint64_t size() const noexcept { return size_; }

 private:
  const int descriptor_;
  const std::uint64_t size_;
};

}  // namespace jobq
