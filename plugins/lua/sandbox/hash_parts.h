// Tracks the large hash parts of a state's tables and estimates the cost of moving a part into a larger part. Lua
// hashes numbers without a secret. Callers choose keys too, for example when an honest filter counts their numbers, and
// can make all keys fall into one chain when the table next grows. Lua then walks the chain once for each key, for
// seconds, and no hook interrupts the walk. The only moment to refuse is Lua's request for the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jobq::lua {

/// Used by one thread at a time. Depends on the layout of a node and on the placement of numbers in Lua 5.4.4
/// (ltable.c).
/// Strings are not examined: Lua hashes strings with a secret unknown to callers.
class HashParts {
 public:
  /// `stepLimit`: steps along chains, each of some 2.5 ns, that moving a part may always take, even a small part.
  explicit HashParts(std::uint64_t stepLimit) : stepLimit_(stepLimit) {}

  /// Returns true if a block of `size` bytes, belonging to no object, may be a hash part large enough to matter. Other
  /// blocks of such a size do no harm: their bytes are read as numbers and never used as pointers.
  static bool isOne(std::size_t size) noexcept;

  /// Returns true if the number keys of every part that may be moved to a new part of `size` bytes spread there like
  /// ordinary keys. Returns false also when memory for the check is missing.
  bool spread(std::size_t size) const noexcept;

  /// Returns true if no part is tracked.
  bool empty() const noexcept { return parts_.empty(); }
  /// Reserves space for one more part. Returns false if no memory is left.
  bool makeRoom() noexcept;
  /// Tracks a part of `size` bytes. Requires a preceding makeRoom().
  void add(const void* block, std::size_t size) noexcept;
  /// Forgets a part. A block that is not tracked is ignored.
  void remove(const void* block) noexcept;

 private:
  struct Part {
    const std::byte* block;
    std::size_t size;
  };
  const std::uint64_t stepLimit_;
  std::vector<Part> parts_;
};

}  // namespace jobq::lua
