// The memory of one Lua state, counted and limited, with an allocator for small blocks. Lua allocates and frees a dozen
// small blocks for each job and passes the size of each freed block, so blocks need no header, and the allocator is
// shared with no other thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sandbox/hash_parts.h"

namespace jobq::lua {

/// Used by one thread at a time.
class Heap {
 public:
  /// `most`: limit in bytes for the memory that Lua requests. `vast`: size in bytes from which a block counts as large.
  Heap(std::size_t most, std::size_t vast) : most_(most), vast_(vast), hashParts_(kStepsAByte * vast) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// Allocates, resizes or frees a block with the contract of lua_Alloc. Returns null if the limit is reached or the
  /// machine has no memory left.
  void* resize(void* block, std::size_t before, std::size_t after) noexcept;

  /// Returns the limit in bytes.
  std::size_t most() const { return most_; }

  /// Returns the bytes that the state takes of the process's memory until the heap is destroyed: at most twice most().
  /// Holes between large blocks come on top; the script most effective at making holes has brought a process to 3.5
  /// times most().
  std::size_t held() const { return held_; }

  /// Returns the size in bytes of the largest large block allocated since the state last held no large block, or zero
  /// if the state holds no large block.
  std::size_t largest() const { return largest_; }

  /// Returns true if a block was refused. From then on any instruction may need a whole collection.
  bool wasRefused() const { return wasRefused_; }

  /// Returns true if the growth of a table was refused because its keys would meet in few chains.
  bool wasCrowded() const { return wasCrowded_; }

  /// Returns how often all large tables were checked for a new table. Each check takes some milliseconds at most.
  std::uint64_t lookedThrough() const { return lookedThrough_; }

 private:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kLargestSmall = 512;
  static constexpr std::size_t kSlab = 16'384;
  static constexpr std::uint64_t kStepsAByte = 128;  // 5 ms in filters, as for blocks

  struct Free {
    Free* next;
  };

  void noteVast(std::size_t before, std::size_t after);
  bool keysSpread(std::size_t size);
  void* allocate(std::size_t size);
  void drop(void* block, std::size_t size);
  void* allocateSmall(std::size_t size);

  const std::size_t most_;
  const std::size_t vast_;
  std::size_t used_ = 0;  // bytes as counted by Lua
  std::size_t held_ = 0;  // bytes of slabs and large blocks
  std::size_t peak_ = 0;
  std::size_t inVast_ = 0;  // part of held_ in large blocks
  std::size_t largest_ = 0;
  bool wasRefused_ = false;
  bool wasCrowded_ = false;
  std::uint64_t lookedThrough_ = 0;
  HashParts hashParts_;
  std::array<Free*, kLargestSmall / kStep> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::byte* at_ = nullptr;  // next free byte in the last slab
  std::size_t left_ = 0;
};

}  // namespace jobq::lua
