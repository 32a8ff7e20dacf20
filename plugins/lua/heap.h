// The memory of one Lua state: counted, limited, and its small blocks its own. Lua makes and drops a dozen of them for
// each job, and says of each how large it was, so that none needs a header, and no other thread's allocator is met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hash_parts.h"

namespace jobq::lua {

/// One thread at a time.
class Heap {
 public:
  /// `most` in bytes, of what Lua asks for; `vast`: from which size on blocks are large.
  Heap(std::size_t most, std::size_t vast) : most_(most), vast_(vast), hashParts_(kStepsAByte * vast) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// As lua_Alloc: null when the limit is reached, or the machine's memory is.
  void* resize(void* block, std::size_t before, std::size_t after) noexcept;

  std::size_t most() const { return most_; }

  /// What the state takes of the process's memory until it is closed: at most twice most(). The holes between large
  /// blocks come on top; the script that is best at making them has brought a process to 3.5 times most().
  std::size_t held() const { return held_; }

  /// The largest block since there was no large one, if there was; else zero.
  std::size_t largest() const { return largest_; }

  /// A block was refused: from then on any instruction may need a whole collection.
  bool wasRefused() const { return wasRefused_; }

  /// Whether a table was not let grow, because its keys would meet in few chains.
  bool wasCrowded() const { return wasCrowded_; }

  /// How often all large tables were looked through, for a new one: each takes some milliseconds at most.
  std::uint64_t lookedThrough() const { return lookedThrough_; }

 private:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kLargestSmall = 512;
  static constexpr std::size_t kSlab = 16'384;
  static constexpr std::uint64_t kStepsAByte = 128;  // as patient with tables as with blocks: 5 ms in filters

  struct Free {
    Free* next;
  };

  void noteVast(std::size_t before, std::size_t after);
  bool keysSpread(std::size_t size);
  void* allocate(std::size_t size);
  void drop(void* block, std::size_t size);
  void* takeSmall(std::size_t size);

  const std::size_t most_;
  const std::size_t vast_;
  std::size_t used_ = 0;  // as Lua counts
  std::size_t held_ = 0;  // slabs and large blocks
  std::size_t peak_ = 0;
  std::size_t inVast_ = 0;  // of held_, in large blocks
  std::size_t largest_ = 0;
  bool wasRefused_ = false;
  bool wasCrowded_ = false;
  std::uint64_t lookedThrough_ = 0;
  HashParts hashParts_;
  std::array<Free*, kLargestSmall / kStep> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::byte* at_ = nullptr;  // in the last slab
  std::size_t left_ = 0;
};

}  // namespace jobq::lua
