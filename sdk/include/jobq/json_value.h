// The parts of a JSON text that was scanned (json.h): views, no copies.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace jobq::json {

inline constexpr std::size_t kMaxDepth = 512;

enum class Kind { null, boolean, number, string, array, object };

/// A value inside a text that was scanned. `raw` is exactly its bytes, quotes and brackets included.
struct Value {
  Kind kind = Kind::null;
  std::string_view raw;
};

/// `key` is raw, without its quotes: compare it through decode().
struct Member {
  std::string_view key;
  Value value;
};

/// `members` is filled when the root is an object, `elements` when it is an array; one level only, and as many as
/// read() was asked for.
struct Document {
  Value root;
  std::vector<Member> members;
  std::vector<Value> elements;

  /// The member with this (decoded) key; the last one if there are several, nothing if there is none.
  std::optional<Value> find(std::string_view key) const;
};

struct Fault {
  std::size_t offset;  ///< bytes from the start
  const char* reason;  ///< "a string holds a raw control character"
};

}  // namespace jobq::json
