// Parts of a scanned JSON text (json.h). Each part is a view into the text and copies no byte of the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace jobq::json {

inline constexpr std::size_t kMaxDepth = 512;  ///< greatest number of arrays and objects inside each other

enum class Kind { null, boolean, number, string, array, object };

/// A value inside a scanned text. `raw` has exactly the bytes of the value, with quotes and brackets. The scanned text
/// has to outlive the object.
struct Value {
  Kind kind = Kind::null;
  std::string_view raw;
};

/// A member of an object. `key` has the raw bytes without quotes; decode() resolves its escapes before a comparison.
struct Member {
  std::string_view key;
  Value value;
};

/// A scanned text. The list `members` has the members of a root object in their order; the list `elements` has the
/// elements of a root array. Both lists have the first level only, and at most as many entries as the call of read()
/// asked for. The scanned text has to outlive the object.
struct Document {
  Value root;
  std::vector<Member> members;
  std::vector<Value> elements;

  /// Returns the value of the listed member with this key. `key` is compared with the decoded keys. If several members
  /// have the key, the last member counts. Returns an empty optional if no listed member has the key. Any thread.
  std::optional<Value> find(std::string_view key) const;
};

/// The first reason why a text is no JSON.
struct Fault {
  std::size_t offset;  ///< position of the fault, in bytes from the start of the text
  const char* reason;  ///< literal without a final dot: "a string holds a raw control character"
};

}  // namespace jobq::json
