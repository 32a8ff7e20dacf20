// Writing of JSON text. Brackets, commas, quotes and escapes are the writer's: a caller states names and values, and
// nested objects and arrays are functions, so that every bracket is closed. Each value is appended in place; a member
// costs no memory beyond the text.
//
//   const std::string text = json::object([&](json::ObjectWriter& out) {
//     out.member("id", id);
//     out.array("sizes", [&](json::ArrayWriter& sizes) { sizes.element(320); });
//   });
//
// All functions are free of shared state: any thread. A writer belongs to one thread.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "jobq/json.h"

namespace jobq::json {

/// The name of a member as a literal. The compiler refuses a literal with characters to escape: quotes, backslashes,
/// control characters and bytes outside of ASCII.
class MemberName {
 public:
  // Implicit, so that a call reads member("id", id).
  consteval MemberName(const char* literal) : text_(literal) {
    for (const char c : text_) {
      if (c < ' ' || c > '~' || c == '"' || c == '\\') throw "the name of a member has a character to escape";
    }
  }
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

namespace detail {

template <class T>
concept Text = std::convertible_to<const T&, std::string_view> && !std::same_as<T, std::nullptr_t>;
template <class T>
concept Number =
    std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, long double>;
template <class T>
concept Function = std::invocable<const T&, std::string&>;
template <class T>
concept Map = requires {
  typename T::mapped_type;
};

template <class T>
void appendDigits(std::string& out, T value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

}  // namespace detail

/// Appends a value to `out`: text as a JSON string (appendQuoted()), bool, whole numbers, doubles (a number that is not
/// finite as null), nullptr and empty optionals as null, lists of values as arrays, maps with text as keys as objects.
/// A function is called once with `out` and appends exactly one JSON value, for a value that is written in parts.
/// Throws only std::bad_alloc, std::length_error, and what a function throws.
template <class T>
void appendValue(std::string& out, const T& value);

class ArrayWriter;

/// Writes the members of one object. Made by object(), appendObject() and the writers themselves.
class ObjectWriter {
 public:
  ObjectWriter(const ObjectWriter&) = delete;
  ObjectWriter& operator=(const ObjectWriter&) = delete;

  /// Writes a member with a value as appendValue() writes it. The caller keeps names different.
  template <class T>
  void member(MemberName name, const T& value) {
    begin(name);
    appendValue(out_, value);
  }
  /// Writes a member with a name that is known only when the program runs: text, which is escaped, or a function that
  /// appends a JSON string, as in appendValue().
  template <class Name, class T>
  void namedMember(const Name& name, const T& value) {
    static_assert(detail::Text<Name> || detail::Function<Name>);
    beginNamed(name);
    appendValue(out_, value);
  }
  /// Writes a member with `json` as its value, byte for byte: a checked JSON text. An empty text is written as null.
  void raw(MemberName name, std::string_view json) {
    begin(name);
    out_ += json.empty() ? "null" : json;
  }
  void namedRaw(std::string_view name, std::string_view json) {
    beginNamed(name);
    out_ += json.empty() ? "null" : json;
  }
  /// Writes a member with an object or array as its value. `fill` is called once, with the nested writer; meanwhile
  /// the outer writer is not used.
  template <class Fill>
  void object(MemberName name, Fill&& fill);
  template <class Fill>
  void array(MemberName name, Fill&& fill);

 private:
  template <class Fill>
  friend void appendObject(std::string& out, Fill&& fill);

  explicit ObjectWriter(std::string& out) : out_(out) {}
  void begin(MemberName name) {
    out_ += empty_ ? "\"" : ",\"";
    out_ += name.text();
    out_ += "\":";
    empty_ = false;
  }
  template <class Name>
  void beginNamed(const Name& name) {
    if (!empty_) out_ += ',';
    appendValue(out_, name);
    out_ += ':';
    empty_ = false;
  }

  std::string& out_;
  bool empty_ = true;
};

/// Writes the elements of one array. Made by array(), appendArray() and the writers themselves.
class ArrayWriter {
 public:
  ArrayWriter(const ArrayWriter&) = delete;
  ArrayWriter& operator=(const ArrayWriter&) = delete;

  /// Writes an element as appendValue() writes it.
  template <class T>
  void element(const T& value) {
    begin();
    appendValue(out_, value);
  }
  /// Writes `json` as an element, byte for byte: a checked JSON text. An empty text is written as null.
  void raw(std::string_view json) {
    begin();
    out_ += json.empty() ? "null" : json;
  }
  /// Writes an object or array as an element. `fill` is called once, with the nested writer; meanwhile the outer
  /// writer is not used.
  template <class Fill>
  void object(Fill&& fill);
  template <class Fill>
  void array(Fill&& fill);

  /// Returns true before the first element.
  bool empty() const { return empty_; }

 private:
  template <class Fill>
  friend void appendArray(std::string& out, Fill&& fill);

  explicit ArrayWriter(std::string& out) : out_(out) {}
  void begin() {
    if (!empty_) out_ += ',';
    empty_ = false;
  }

  std::string& out_;
  bool empty_ = true;
};

/// Appends an object to `out`. `fill` is called once with an ObjectWriter&. If `fill` throws, `out` keeps the begun
/// object.
template <class Fill>
void appendObject(std::string& out, Fill&& fill) {
  out += '{';
  ObjectWriter writer(out);
  fill(writer);
  out += '}';
}

/// Appends an array to `out`. `fill` is called once with an ArrayWriter&. If `fill` throws, `out` keeps the begun
/// array.
template <class Fill>
void appendArray(std::string& out, Fill&& fill) {
  out += '[';
  ArrayWriter writer(out);
  fill(writer);
  out += ']';
}

/// Returns an object as text. `fill` is called once with an ObjectWriter&, and its exceptions pass.
template <class Fill>
std::string object(Fill&& fill) {
  std::string out;
  appendObject(out, fill);
  return out;
}

/// Returns an array as text. `fill` is called once with an ArrayWriter&, and its exceptions pass.
template <class Fill>
std::string array(Fill&& fill) {
  std::string out;
  appendArray(out, fill);
  return out;
}

template <class Fill>
void ObjectWriter::object(MemberName name, Fill&& fill) {
  begin(name);
  appendObject(out_, fill);
}

template <class Fill>
void ObjectWriter::array(MemberName name, Fill&& fill) {
  begin(name);
  appendArray(out_, fill);
}

template <class Fill>
void ArrayWriter::object(Fill&& fill) {
  begin();
  appendObject(out_, fill);
}

template <class Fill>
void ArrayWriter::array(Fill&& fill) {
  begin();
  appendArray(out_, fill);
}

template <class T>
void appendValue(std::string& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::same_as<T, std::nullptr_t>) {
    out += "null";
  } else if constexpr (detail::Text<T>) {
    appendQuoted(out, value);
  } else if constexpr (detail::Number<T>) {
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value)) return void(out += "null");
    }
    detail::appendDigits(out, value);
  } else if constexpr (detail::Function<T>) {
    value(out);
  } else if constexpr (requires { value.has_value(); }) {
    if (!value) return void(out += "null");
    appendValue(out, *value);
  } else if constexpr (detail::Map<T>) {
    appendObject(out, [&value](ObjectWriter& members) {
      for (const auto& [name, member] : value) members.namedMember(name, member);
    });
  } else {
    appendArray(out, [&value](ArrayWriter& elements) {
      for (const auto& element : value) elements.element(element);
    });
  }
}

}  // namespace jobq::json
