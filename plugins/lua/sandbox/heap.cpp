#include "sandbox/heap.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <new>

namespace jobq::lua {

static_assert(
    LUA_VERSION_RELEASE_NUM == 50404,
    "Another release of Lua: check that luaM_malloc_ of lmem.c passes zero for a block without an object, and "
    "that setnodevector of ltable.c allocates each hash part as such a block of its own");

Heap::~Heap() {
  slabs_.clear();
  // Without malloc_trim glibc keeps the memory that many small blocks leave behind. jobqd has another allocator.
  constexpr std::size_t kMuch = 8U << 20;
  if (peak_ > kMuch) malloc_trim(0);
}

void* Heap::resize(void* block, std::size_t before, std::size_t after) noexcept {
  // Lua passes the type of a new block's object in `before`, and zero for a block without an object.
  const bool isHashPart = block == nullptr && before == 0 && HashParts::isOne(after);
  if (block == nullptr) before = 0;
  if (after > before && used_ + (after - before) > most_) {
    wasRefused_ = true;
    wasCrowded_ = false;
    return nullptr;
  }
  if (isHashPart && !keysSpread(after)) return nullptr;
  void* moved = nullptr;
  if (after > 0) {
    if (before > kLargestSmall && after > kLargestSmall) {
      if (HashParts::isOne(before)) hashParts_.remove(block);
      moved = std::realloc(block, after);
      if (moved == nullptr) return nullptr;
      held_ = held_ - before + after;
    } else {
      moved = allocate(after);
      if (moved == nullptr) return nullptr;
      if (block != nullptr) std::memcpy(moved, block, std::min(before, after));
    }
  }
  if (isHashPart) hashParts_.add(moved, after);
  if (block != nullptr && (after == 0 || before <= kLargestSmall || after <= kLargestSmall)) drop(block, before);
  used_ = used_ - before + after;
  peak_ = std::max(peak_, held_);
  if (before >= vast_ || after >= vast_) noteVast(before, after);
  return moved;
}

void Heap::noteVast(std::size_t before, std::size_t after) {
  if (before >= vast_) inVast_ -= before;
  if (after >= vast_) inVast_ += after;
  largest_ = inVast_ == 0 ? 0 : std::max(largest_, after);
}

// Lua does not tell for which table a new part is made, nor whether the table had a part before. Every tracked part is
// therefore checked.
bool Heap::keysSpread(std::size_t size) {
  if (!hashParts_.makeRoom()) return false;
  if (hashParts_.empty()) return true;
  ++lookedThrough_;
  if (hashParts_.spread(size)) return true;
  wasCrowded_ = wasRefused_ = true;
  return false;
}

void* Heap::allocate(std::size_t size) {
  if (size <= kLargestSmall) return allocateSmall(size);
  void* block = std::malloc(size);
  if (block != nullptr) held_ += size;
  return block;
}

void Heap::drop(void* block, std::size_t size) {
  if (size == 0) return;
  if (size > kLargestSmall) {
    if (HashParts::isOne(size)) hashParts_.remove(block);
    std::free(block);
    held_ -= size;
    return;
  }
  Free*& list = free_[(size - 1) / kStep];
  list = new (block) Free{list};
}

void* Heap::allocateSmall(std::size_t size) {
  Free*& list = free_[(size - 1) / kStep];
  if (list != nullptr) {
    void* block = list;
    list = list->next;
    return block;
  }
  const std::size_t rounded = (size + kStep - 1) / kStep * kStep;
  if (left_ < rounded) {
    // Free blocks of one size serve no other size. Without a limit each size could hold as much as the script may use.
    if (held_ + kSlab > 2 * most_) {
      wasRefused_ = true;
      return nullptr;
    }
    try {
      slabs_.emplace_back(new std::byte[kSlab]);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    held_ += kSlab;
    at_ = slabs_.back().get();
    left_ = kSlab;
  }
  void* block = at_;
  at_ += rounded;
  left_ -= rounded;
  return block;
}

}  // namespace jobq::lua
