// The three formats of pictures and their names.
#pragma once

#include <optional>
#include <string_view>

namespace jobq::image {

enum class Format { jpeg, png, webp };

/// Returns "jpeg", "png" or "webp": the word in inputs and outputs.
std::string_view nameOf(Format format) noexcept;
/// Returns the format with the name, or no value for an unknown name.
std::optional<Format> formatNamed(std::string_view name) noexcept;

/// Returns "jpg", "png" or "webp".
std::string_view extensionOf(Format format) noexcept;
/// Returns the media type, such as "image/jpeg".
std::string_view mediaTypeOf(Format format) noexcept;
/// Returns the longest side of a picture in the format, in pixels.
int longestSideOf(Format format) noexcept;

}  // namespace jobq::image
