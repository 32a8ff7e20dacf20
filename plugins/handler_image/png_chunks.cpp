#include "png_chunks.h"

#include <array>
#include <cstdint>

#include "byte_reader.h"

namespace jobq::image {

namespace {

constexpr std::size_t kSignatureSize = 8;
constexpr std::size_t kFrameSize = 12;  // bytes for length, name and checksum of a chunk

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xedb88320U : 0U);
    table[i] = value;
  }
  return table;
}();

std::uint32_t crcOf(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ crc >> 8;
  return ~crc;
}

bool isEssential(std::string_view name) {
  return name == "IHDR" || name == "PLTE" || name == "tRNS" || name == "IDAT" || name == "IEND";
}

}  // namespace

std::optional<std::string> essentialPng(std::string_view file) {
  const ByteReader bytes(file);
  std::string kept(bytes.text(0, kSignatureSize));
  kept.reserve(file.size());
  for (std::size_t at = kSignatureSize; at + kFrameSize <= file.size();) {
    const std::size_t length = bytes.big(at, 4);
    if (length > file.size() - at - kFrameSize) return std::nullopt;
    const std::string_view name = bytes.text(at + 4, 4);
    if (isEssential(name)) {
      if (crcOf(bytes.text(at + 4, 4 + length)) != bytes.big(at + 8 + length, 4)) return std::nullopt;
      kept.append(bytes.text(at, kFrameSize + length));
      if (name == "IEND") return kept;
    }
    at += kFrameSize + length;
  }
  return std::nullopt;
}

}  // namespace jobq::image
