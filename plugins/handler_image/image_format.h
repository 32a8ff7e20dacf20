// The three picture formats and their names.
#pragma once

#include <optional>
#include <string_view>

namespace jobq::image {

enum class Format { jpeg, png, webp };

/// "jpeg", "png", "webp": the word in inputs and outputs.
std::string_view nameOf(Format format) noexcept;
std::optional<Format> formatNamed(std::string_view name) noexcept;

/// "jpg", "png", "webp".
std::string_view extensionOf(Format format) noexcept;
/// "image/jpeg" and so on.
std::string_view mediaTypeOf(Format format) noexcept;
/// The longest side that the format can hold, in pixels.
int longestSideOf(Format format) noexcept;

}  // namespace jobq::image
