#include "sandbox/hash_parts.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <lua.hpp>
#include <new>
#include <optional>

namespace jobq::lua {
namespace {

static_assert(LUA_VERSION_RELEASE_NUM == 50404,
              "Another release of Lua: compare Node and the type tags of lobject.h with the constants below, and "
              "l_hashfloat, hashint, luaH_resize and rehash of ltable.c with hashOf, placeOf and leastMoved; then run "
              "tests/lua");
static_assert(sizeof(lua_Integer) == 8 && sizeof(lua_Number) == 8 && sizeof(void*) == 8,
              "A node is measured for values of 8 bytes");

// The layout of Node in Lua's lobject.h, in bytes.
constexpr std::size_t kNode = 24;
constexpr std::size_t kTypeOfValue = 8;
constexpr std::size_t kTypeOfKey = 9;
constexpr std::size_t kKey = 16;
constexpr unsigned char kNothing = 0x00;
constexpr unsigned char kInteger = 0x03;
constexpr unsigned char kFloat = 0x13;

// Smallest number of keys that matters. The searches along one chain of so many keys take some 20 ms.
constexpr std::size_t kLeast = 4'096;

// Steps allowed for each node. Keys that were not chosen on purpose take two steps. Times of events as floats take as
// many steps as there are events in a second, because Lua's hash distinguishes only the seconds.
constexpr std::uint64_t kWay = 64;

// Insertion moves a node that occupies the place of a new key, and searches the chain of the moved node for its
// predecessor. A single key may cost the longest chain, but only keys chosen on purpose all do.
constexpr std::uint64_t kMoves = 4;

template <class Value>
Value at(const std::byte* place) {
  Value value;
  std::memcpy(&value, place, sizeof value);
  return value;
}

std::uint32_t hashOf(double number) {
  int exponent = 0;
  const double scaled = std::frexp(number, &exponent) * -static_cast<double>(INT_MIN);
  if (!(scaled >= -0x1p63 && scaled < 0x1p63)) return 0;
  const std::uint32_t sum =
      static_cast<std::uint32_t>(exponent) + static_cast<std::uint32_t>(static_cast<std::int64_t>(scaled));
  return sum <= INT_MAX ? sum : ~sum;
}

bool hasValue(const std::byte* node) { return (at<unsigned char>(node + kTypeOfValue) & 0x0f) != 0; }

// Returns the place of the node's key among `count` nodes if the key is a number. Strings are hashed with a secret, and
// keys of other types are too few to matter.
std::optional<std::size_t> placeOf(const std::byte* node, std::size_t count) {
  if (!hasValue(node)) return std::nullopt;
  const auto type = at<unsigned char>(node + kTypeOfKey);
  const std::size_t divisor = (count - 1) | 1;
  if (type == kInteger) return at<std::uint64_t>(node + kKey) % divisor;
  if (type == kFloat) return hashOf(at<double>(node + kKey)) % divisor;
  return std::nullopt;
}

// Returns the least number of nodes with a value in a part about to be moved; numbers from 1 on may go to the array
// instead. Returns nullopt if the part is not about to be moved: Lua makes a new part when every node of the old part
// has a key, even a key whose value is gone, and most parts show a free node at once.
std::optional<std::size_t> leastMoved(const std::byte* block, std::size_t size) {
  std::size_t moved = 0;
  for (const std::byte* node = block; node < block + size; node += kNode) {
    const auto type = at<unsigned char>(node + kTypeOfKey);
    if (type == kNothing) return std::nullopt;
    const bool mayLeave = type == kInteger && at<std::int64_t>(node + kKey) > 0;
    if (hasValue(node) && !mayLeave) ++moved;
  }
  return moved;
}

}  // namespace

bool HashParts::isOne(std::size_t size) noexcept {
  return size >= kLeast * kNode && size % kNode == 0 && std::has_single_bit(size / kNode);
}

bool HashParts::spread(std::size_t size) const noexcept {
  const std::size_t count = size / kNode;
  if (count <= kLeast) return true;
  const std::uint64_t budget = std::max(kWay * count, stepLimit_);
  std::vector<std::uint32_t> chains;
  for (const Part& part : parts_) {
    const auto moved = leastMoved(part.block, part.size);
    if (!moved || *moved >= count) continue;
    try {
      chains.resize(count);
    } catch (const std::bad_alloc&) {
      return false;
    }
    const auto each = [&](auto&& act) {
      for (std::size_t i = 0; i < part.size; i += kNode) {
        if (const auto place = placeOf(part.block + i, count)) act(chains[*place]);
      }
    };
    std::uint64_t steps = 0;
    std::uint64_t keys = 0;
    std::uint32_t longest = 0;
    each([&](std::uint32_t& chain) {
      steps += ++chain;
      longest = std::max(longest, chain);
      ++keys;
    });
    if (steps > budget || keys * longest > kMoves * budget) return false;
    each([](std::uint32_t& chain) { chain = 0; });
  }
  return true;
}

bool HashParts::makeRoom() noexcept {
  try {
    if (parts_.size() == parts_.capacity()) parts_.reserve(2 * parts_.size() + 8);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void HashParts::add(const void* block, std::size_t size) noexcept {
  parts_.push_back({static_cast<const std::byte*>(block), size});
}

void HashParts::remove(const void* block) noexcept {
  const auto found =
      std::find_if(parts_.begin(), parts_.end(), [block](const Part& part) { return part.block == block; });
  if (found == parts_.end()) return;
  *found = parts_.back();
  parts_.pop_back();
}

}  // namespace jobq::lua
