// The bytes of a connection that have arrived and are not parsed yet.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"

namespace jobq {

/// One thread at a time. The buffer holds memory only while it has bytes, so that a parked connection costs little.
/// Memory beyond kFree draws on a budget.
class ReadBuffer {
 public:
  static constexpr std::size_t kFree = 8192;  ///< bytes held without drawing on the budget

  /// `memory` counts the bytes that all buffers together may hold beyond kFree each, and outlives the buffer.
  explicit ReadBuffer(Budget& memory) noexcept : memory_(memory) {}

  /// Returns the unparsed bytes. The view is valid until the next call of a function that is not const.
  std::string_view view() const noexcept { return {bytes_.get() + from_, to_ - from_}; }
  bool empty() const noexcept { return from_ == to_; }
  /// Removes `bytes` from the front; at most the size of view().
  void consume(std::size_t bytes) noexcept { from_ += bytes; }

  /// Reads once. Returns the result of ByteStream::read, or 0 if the budget has no room for more bytes; full() tells
  /// the two apart. Throws std::bad_alloc.
  std::optional<std::size_t> fill(ByteStream& stream, ByteStream::Wait wait) {
    full_ = !makeRoom();
    if (full_) return 0;
    const auto got = stream.read(bytes_.get() + to_, size_ - to_, wait);
    to_ += got.value_or(0);
    return got;
  }

  /// Returns true if the last fill() found no room in the budget.
  bool full() const noexcept { return full_; }

  /// Frees the memory beyond kFree if the unparsed bytes fit into kFree. Throws std::bad_alloc.
  void shrink() {
    const std::size_t kept = to_ - from_;
    if (size_ > kFree && kept <= kFree) moveTo(kFree);
  }

  /// Frees memory that the unparsed bytes do not need, as far as memory for moving the bytes is available.
  void releaseMemory() noexcept {
    if (empty()) return clear();
    try {
      shrink();
    } catch (const std::bad_alloc&) {
    }
  }

  /// Drops all bytes and frees their memory.
  void clear() noexcept {
    bytes_.reset();
    reservation_.release();
    size_ = from_ = to_ = 0;
  }

 private:
  bool makeRoom() {
    if (empty()) from_ = to_ = 0;
    if (to_ < size_) return true;
    const std::size_t kept = to_ - from_;
    const std::size_t size = kept * 2 > kFree ? kept * 2 : kFree;
    if (size > size_ || from_ == 0) {
      if (size > kFree && !reservation_.grow(memory_, size - kFree - reservation_.amount())) return false;
      moveTo(size);
    } else {
      std::memmove(bytes_.get(), bytes_.get() + from_, kept);
      from_ = 0;
      to_ = kept;
    }
    return true;
  }

  void moveTo(std::size_t size) {
    const std::size_t kept = to_ - from_;
    std::unique_ptr<char[]> block(new char[size]);
    if (kept > 0) std::memcpy(block.get(), bytes_.get() + from_, kept);
    bytes_ = std::move(block);
    reservation_.shrinkTo(size > kFree ? size - kFree : 0);
    size_ = size;
    from_ = 0;
    to_ = kept;
  }

  Budget& memory_;
  Budget::Reservation reservation_;
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t from_ = 0;
  std::size_t to_ = 0;
  bool full_ = false;
};

}  // namespace jobq
