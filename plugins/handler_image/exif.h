// The one EXIF field that changes how a picture looks.
#pragma once

#include <optional>
#include <string_view>

namespace jobq::image {

/// The orientation, 1 to 8, in the body of a JPEG's APP1 segment; nothing when there is none or the body is damaged.
/// Pure.
std::optional<int> exifOrientation(std::string_view segment);

}  // namespace jobq::image
