// What came over a connection and was not read yet.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/http/link.h"

namespace jobq {

/// One thread at a time. Memory is held only while there are bytes, so that a parked connection costs little.
class Inbox {
 public:
  std::string_view view() const noexcept { return {bytes_.get() + from_, to_ - from_}; }
  bool empty() const noexcept { return from_ == to_; }
  void consume(std::size_t bytes) noexcept { from_ += bytes; }

  /// Reads once. The result is Link::read's.
  std::optional<std::size_t> fill(Link& link, Link::Wait wait) {
    makeRoom();
    const auto got = link.read(bytes_.get() + to_, size_ - to_, wait);
    to_ += got.value_or(0);
    return got;
  }

  /// Gives the memory back when nothing is kept in it.
  void rest() noexcept {
    if (!empty()) return;
    bytes_.reset();
    size_ = from_ = to_ = 0;
  }

 private:
  static constexpr std::size_t kFirst = 8192;

  void makeRoom() {
    if (empty()) from_ = to_ = 0;
    if (to_ < size_) return;
    const std::size_t kept = to_ - from_;
    const std::size_t size = kept * 2 > kFirst ? kept * 2 : kFirst;
    if (size > size_ || from_ == 0) {
      std::unique_ptr<char[]> larger(new char[size]);
      if (kept > 0) std::memcpy(larger.get(), bytes_.get() + from_, kept);
      bytes_ = std::move(larger);
      size_ = size;
    } else {
      std::memmove(bytes_.get(), bytes_.get() + from_, kept);
    }
    from_ = 0;
    to_ = kept;
  }

  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t from_ = 0;
  std::size_t to_ = 0;
};

}  // namespace jobq
