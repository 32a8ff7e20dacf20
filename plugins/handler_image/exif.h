// The EXIF field that changes the look of a picture.
#pragma once

#include <optional>
#include <string_view>

namespace jobq::image {

/// Returns the orientation, 1 to 8, from the body of a JPEG's APP1 segment, or no value if the field is absent or the
/// body is damaged. Pure.
std::optional<int> exifOrientation(std::string_view segment);

}  // namespace jobq::image
