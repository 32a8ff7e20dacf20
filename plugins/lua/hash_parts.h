// The large hash parts of a state's tables, and what moving one into a larger one would take. Lua hashes numbers
// without a secret: whoever chooses the keys, be it a caller whose numbers an honest filter counts, can have all of
// them fall into one chain when the table next grows. Lua then walks that chain once for each key, for seconds, and
// nothing interrupts it. The one moment when it can be refused is when Lua asks for the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jobq::lua {

/// One thread at a time. Knows how Lua 5.4 lays out a node and where it puts a number (ltable.c). Texts are not looked
/// at: Lua hashes them with a secret, which callers do not know.
class HashParts {
 public:
  /// `patience`: steps along chains that moving one may take however small it is; one is some 2.5 ns.
  explicit HashParts(std::uint64_t patience) : patience_(patience) {}

  /// A block of that size, and of no object, may be a hash part that is large enough to matter. What else has such a
  /// size does no harm: it is read as numbers, and nothing in it is believed to be a pointer.
  static bool isOne(std::size_t size) noexcept;

  /// Whether the number keys of every part that may be the one that is moved to a new one of that size spread there as
  /// keys do.
  bool spread(std::size_t size) const noexcept;

  bool empty() const noexcept { return parts_.empty(); }
  /// False: there is no memory to remember one more.
  bool makeRoom() noexcept;
  /// After makeRoom().
  void add(const void* block, std::size_t size) noexcept;
  void remove(const void* block) noexcept;

 private:
  struct Part {
    const std::byte* block;
    std::size_t size;
  };
  const std::uint64_t patience_;
  std::vector<Part> parts_;
};

}  // namespace jobq::lua
