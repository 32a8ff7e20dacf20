// Reading of JSON text without changing the text. A strict scanner (RFC 8259, UTF-8 checked) says whether a text is
// JSON and where the parts of the text are. The scanner allocates memory only for the list of members or elements.
// Numbers of any length, spellings and the order of keys stay as they came, because jobq carries the caller's own
// bytes. Every view points into the scanned text, so the text has to outlive the views. All functions are free of
// shared state: any thread.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "jobq/json_scan.h"
#include "jobq/json_value.h"  // IWYU pragma: export

namespace jobq::json {

/// Scans a text. The whole text must be a single JSON value, with blanks around it or not. Returns the document with
/// its first `most` members or elements, or the first fault of the text. A list takes up to ten times the memory of the
/// text, 24 to 40 bytes for each entry. Throws only std::bad_alloc.
inline std::variant<Document, Fault> read(std::string_view text, std::size_t most = SIZE_MAX) {
  return detail::Scanner(text, most).run();
}

/// Returns the first fault of the text, or an empty optional if the text is a single JSON value. Allocates no memory.
inline std::optional<Fault> check(std::string_view text) {
  const auto result = detail::Scanner(text, 0).run();
  const auto* fault = std::get_if<Fault>(&result);
  return fault == nullptr ? std::nullopt : std::optional(*fault);
}

/// Returns true if the text is a single JSON value. Allocates no memory.
inline bool valid(std::string_view text) { return !check(text); }

/// Returns the characters of a scanned string in UTF-8, with escapes resolved. `raw` comes from a text without faults,
/// with or without its quotes.
std::string decode(std::string_view raw);

/// Returns the integer if the value is a number without fraction and exponent within 64 bits with sign, otherwise an
/// empty optional.
inline std::optional<std::int64_t> toInteger(const Value& value) {
  std::int64_t number = 0;
  const char* end = value.raw.data() + value.raw.size();
  if (value.kind != Kind::number) return std::nullopt;
  const auto [at, error] = std::from_chars(value.raw.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

/// Returns the integer of toInteger() if it is from `min` to `max`, otherwise an empty optional.
inline std::optional<std::int64_t> toInteger(const Value& value, std::int64_t min, std::int64_t max) {
  const auto number = toInteger(value);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

/// Returns the nearest double if the value is a number that a double can hold, from `min` to `max`, otherwise an empty
/// optional.
inline std::optional<double> toNumber(const Value& value, double min, double max) {
  double number = 0;
  const char* end = value.raw.data() + value.raw.size();
  if (value.kind != Kind::number) return std::nullopt;
  const auto [at, error] = std::from_chars(value.raw.data(), end, number);
  if (error != std::errc() || at != end || number < min || number > max) return std::nullopt;
  return number;
}

/// Returns the value of `true` or `false`, otherwise an empty optional.
inline std::optional<bool> toBoolean(const Value& value) {
  if (value.kind != Kind::boolean) return std::nullopt;
  return value.raw == "true";
}

/// Returns the decoded characters if the value is a string, otherwise an empty optional.
inline std::optional<std::string> toText(const Value& value) {
  if (value.kind != Kind::string) return std::nullopt;
  return decode(value.raw);
}

/// Returns the decoded characters if the value is a string of `min` to `max` bytes, otherwise an empty optional.
inline std::optional<std::string> toText(const Value& value, std::size_t min, std::size_t max) {
  auto text = toText(value);
  return text && text->size() >= min && text->size() <= max ? std::move(text) : std::nullopt;
}

/// Appends `text`, in UTF-8, to `out` with the escapes of a JSON string, without quotes: a long string may be written
/// in pieces that end between two characters. Each byte that is not valid UTF-8 becomes U+FFFD.
void appendEscaped(std::string& out, std::string_view text);

/// Appends `text` to `out` as a JSON string: quotes around the text of appendEscaped().
void appendQuoted(std::string& out, std::string_view text);

/// Returns `text` as a JSON string with quotes, as appendQuoted() writes it.
inline std::string quoted(std::string_view text) {
  std::string out;
  appendQuoted(out, text);
  return out;
}

namespace detail {

inline void appendUtf8(std::string& out, std::uint32_t code) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace detail

inline std::string decode(std::string_view raw) {
  if (raw.size() >= 2 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out.push_back(raw[i]);
      continue;
    }
    switch (raw[++i]) {
      case 'b': out.push_back('\b'); break;
      case 'f': out.push_back('\f'); break;
      case 'n': out.push_back('\n'); break;
      case 'r': out.push_back('\r'); break;
      case 't': out.push_back('\t'); break;
      case 'u': {
        std::uint32_t code = detail::hex4(raw.substr(i + 1)).value_or(0xfffd);
        i += 4;
        if (code >= 0xd800 && code <= 0xdbff) {
          const std::uint32_t low = detail::hex4(raw.substr(i + 3)).value_or(0xdc00);
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          i += 6;
        }
        detail::appendUtf8(out, code);
        break;
      }
      default: out.push_back(raw[i]);
    }
  }
  return out;
}

inline std::optional<Value> Document::find(std::string_view key) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    if (member->key == key) return member->value;
    if (member->key.find('\\') != std::string_view::npos && decode(member->key) == key) return member->value;
  }
  return std::nullopt;
}

inline void appendEscaped(std::string& out, std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  std::size_t plain = 0;  // start of the characters that are copied as they are
  for (std::size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const bool isAscii = c < 0x80;
    const std::size_t length = isAscii ? 1 : detail::utf8Length(text.substr(i, 4));
    if (isAscii ? c >= 0x20 && c != '"' && c != '\\' : length > 0) {
      i += length;
      continue;
    }
    out.append(text.substr(plain, i - plain));
    if (!isAscii) {
      out.append("\xef\xbf\xbd");
    } else if (c < 0x20) {
      out.append("\\u00");
      out.push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 0xf]);
    } else {
      out.push_back('\\');
      out.push_back(text[i]);
    }
    plain = ++i;
  }
  out.append(text.substr(plain));
}

inline void appendQuoted(std::string& out, std::string_view text) {
  out.reserve(out.size() + text.size() + 2);
  out.push_back('"');
  appendEscaped(out, text);
  out.push_back('"');
}

}  // namespace jobq::json
