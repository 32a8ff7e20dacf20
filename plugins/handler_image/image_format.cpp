#include "image_format.h"

namespace jobq::image {

namespace {

struct Row {
  Format format;
  std::string_view name;
  std::string_view extension;
  std::string_view mediaType;
  int longestSide;
};

constexpr Row kRows[] = {
    {Format::jpeg, "jpeg", "jpg", "image/jpeg", 65'500},
    {Format::png, "png", "png", "image/png", 1'000'000},
    {Format::webp, "webp", "webp", "image/webp", 16'383},
};

constexpr const Row& rowOf(Format format) { return kRows[static_cast<int>(format)]; }

}  // namespace

std::string_view nameOf(Format format) noexcept { return rowOf(format).name; }

std::optional<Format> formatNamed(std::string_view name) noexcept {
  for (const Row& row : kRows) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

std::string_view extensionOf(Format format) noexcept { return rowOf(format).extension; }
std::string_view mediaTypeOf(Format format) noexcept { return rowOf(format).mediaType; }
int longestSideOf(Format format) noexcept { return rowOf(format).longestSide; }

}  // namespace jobq::image
