#include "exif.h"

#include "byte_reader.h"

namespace jobq::image {

namespace {

constexpr std::string_view kSignature{"Exif\0\0", 6};
constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;
constexpr std::size_t kEntrySize = 12;

}  // namespace

std::optional<int> exifOrientation(std::string_view segment) {
  if (!segment.starts_with(kSignature)) return std::nullopt;
  const ByteReader tiff(segment.substr(kSignature.size()));
  const bool little = tiff.text(0, 2) == "II";
  if (!little && tiff.text(0, 2) != "MM") return std::nullopt;
  const auto number = [&](std::size_t at, std::size_t count) {
    return little ? tiff.little(at, count) : tiff.big(at, count);
  };
  const std::size_t directory = number(4, 4);
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntrySize;
    if (entry + kEntrySize > tiff.size()) return std::nullopt;
    if (number(entry, 2) != kOrientationTag) continue;
    const std::uint32_t value = number(entry + 8, 2);
    if (number(entry + 2, 2) != kShort || value < 1 || value > 8) return std::nullopt;
    return static_cast<int>(value);
  }
  return std::nullopt;
}

}  // namespace jobq::image
