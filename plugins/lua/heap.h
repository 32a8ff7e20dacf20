// The memory of one Lua state: counted, limited, and its small blocks its own. Lua makes and drops a dozen of them for
// each job, and says of each how large it was, so that none needs a header, and no other thread's allocator is met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace jobq::lua {

/// One thread at a time.
class Heap {
 public:
  /// `most` in bytes, of what Lua asks for.
  explicit Heap(std::size_t most) : most_(most) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// As lua_Alloc: null when the limit is reached, or the machine's memory is.
  void* resize(void* block, std::size_t before, std::size_t after) noexcept;

  std::size_t most() const { return most_; }

  /// What the state takes of the process's memory until it is closed: at most twice most().
  std::size_t held() const { return held_; }

  /// The largest block since there was none of more than a megabyte, if it was larger than that; else zero. Beyond all
  /// sizes once one was refused: from then on any instruction may need a whole collection.
  std::size_t largest() const { return wasRefused_ ? SIZE_MAX : largest_; }

 private:
  static constexpr std::size_t kStep = 16;
  static constexpr std::size_t kLargestSmall = 512;
  static constexpr std::size_t kSlab = 16'384;
  static constexpr std::size_t kVast = std::size_t{1} << 20;

  struct Free {
    Free* next;
  };

  void noteVast(std::size_t before, std::size_t after);
  void* take(std::size_t size);
  void drop(void* block, std::size_t size);
  void* takeSmall(std::size_t size);

  const std::size_t most_;
  std::size_t used_ = 0;  // as Lua counts
  std::size_t held_ = 0;  // slabs and large blocks
  std::size_t peak_ = 0;
  std::size_t vast_ = 0;  // of held_, in blocks of kVast and more
  std::size_t largest_ = 0;
  bool wasRefused_ = false;
  std::array<Free*, kLargestSmall / kStep> free_{};
  std::vector<std::unique_ptr<std::byte[]>> slabs_;
  std::byte* at_ = nullptr;  // in the last slab
  std::size_t left_ = 0;
};

}  // namespace jobq::lua
