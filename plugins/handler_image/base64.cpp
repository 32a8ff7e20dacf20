#include "base64.h"

#include <array>
#include <cstdint>

namespace jobq::image {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 0xff;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::variant<std::string, Base64Fault> decodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return Base64Fault{text.size(), "the length is not a multiple of four"};
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t digits = text.size() - padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t held = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(text[i])];
    if (value == kNone) return Base64Fault{i, "a character is not in the base64 alphabet"};
    held = (held << 6) | value;
    if (i % 4 != 3) continue;
    bytes.push_back(static_cast<char>(held >> 16));
    bytes.push_back(static_cast<char>(held >> 8));
    bytes.push_back(static_cast<char>(held));
  }
  if (padding == 2) bytes.push_back(static_cast<char>(held >> 4));
  if (padding == 1) {
    bytes.push_back(static_cast<char>(held >> 10));
    bytes.push_back(static_cast<char>(held >> 2));
  }
  return bytes;
}

void appendBase64(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  const auto byte = [bytes](std::size_t i) {
    return i < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out.push_back(kAlphabet[group >> 18]);
    out.push_back(kAlphabet[(group >> 12) & 0x3f]);
    out.push_back(i + 1 < bytes.size() ? kAlphabet[(group >> 6) & 0x3f] : '=');
    out.push_back(i + 2 < bytes.size() ? kAlphabet[group & 0x3f] : '=');
  }
}

}  // namespace jobq::image
