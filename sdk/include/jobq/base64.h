// Base64 as in RFC 4648, section 4: the standard alphabet, with padding, without line breaks. Reading is strict: each
// byte string has exactly one text, and every other text is refused. All functions are free of shared state: any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace jobq {

/// The first reason why a text is no base64.
struct Base64Fault {
  std::size_t offset;  ///< position of the fault, in bytes from the start of the text
  const char* reason;  ///< literal without a final dot: "a character is not in the base64 alphabet"
};

/// Appends the base64 text of `bytes` to `out`: four characters for each three bytes, begun or whole. Throws only
/// std::bad_alloc and std::length_error.
void appendBase64(std::string& out, std::string_view bytes);

/// Returns the base64 text of `bytes`, as appendBase64() writes it.
inline std::string toBase64(std::string_view bytes) {
  std::string text;
  appendBase64(text, bytes);
  return text;
}

/// Returns the bytes of a base64 text, or the first fault of the text. Refused are characters outside of the alphabet
/// (also blanks and line breaks), missing or misplaced padding, and a last character with bits that belong to no byte.
/// The result takes three bytes for each four characters: a caller with a limit checks `text.size()` before the call.
/// Throws only std::bad_alloc.
std::variant<std::string, Base64Fault> readBase64(std::string_view text);

/// Returns the bytes of a base64 text, or an empty optional if readBase64() returns a fault.
inline std::optional<std::string> fromBase64(std::string_view text) {
  auto result = readBase64(text);
  auto* bytes = std::get_if<std::string>(&result);
  return bytes == nullptr ? std::nullopt : std::optional(std::move(*bytes));
}

namespace detail {

inline constexpr std::string_view kBase64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
inline constexpr std::uint8_t kNoBase64Value = 0xff;

inline constexpr std::array<std::uint8_t, 256> kBase64Values = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoBase64Value);
  for (std::size_t i = 0; i < kBase64Alphabet.size(); ++i) {
    values[static_cast<unsigned char>(kBase64Alphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace detail

inline void appendBase64(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  const auto byte = [bytes](std::size_t i) {
    return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out.push_back(detail::kBase64Alphabet[group >> 18]);
    out.push_back(detail::kBase64Alphabet[(group >> 12) & 0x3f]);
    out.push_back(i + 1 < bytes.size() ? detail::kBase64Alphabet[(group >> 6) & 0x3f] : '=');
    out.push_back(i + 2 < bytes.size() ? detail::kBase64Alphabet[group & 0x3f] : '=');
  }
}

inline std::variant<std::string, Base64Fault> readBase64(std::string_view text) {
  if (text.size() % 4 != 0) return Base64Fault{text.size(), "the length is not a multiple of four"};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t digits = text.size() - padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const std::uint8_t value = detail::kBase64Values[static_cast<unsigned char>(text[i])];
    if (value == detail::kNoBase64Value) return Base64Fault{i, "a character is not in the base64 alphabet"};
    held = (held << 6) | value;
    if (i % 4 != 3) continue;
    bytes.push_back(static_cast<char>(held >> 16));
    bytes.push_back(static_cast<char>(held >> 8));
    bytes.push_back(static_cast<char>(held));
    held = 0;
  }
  // One padding character stands for two unused bits of the last character, and two stand for four bits.
  if ((held & ((1U << (2 * padding)) - 1)) != 0) {
    return Base64Fault{digits - 1, "the last character has bits that belong to no byte"};
  }
  if (padding == 2) bytes.push_back(static_cast<char>(held >> 4));
  if (padding == 1) {
    bytes.push_back(static_cast<char>(held >> 10));
    bytes.push_back(static_cast<char>(held >> 2));
  }
  return bytes;
}

}  // namespace jobq
