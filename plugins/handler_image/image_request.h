// The input of an image job is a JSON object:
//
//   image       base64 of a JPEG, PNG or WebP file (RFC 4648, padded, no line breaks)   exactly one
//   url         http or https address of such a file                                    of the two
//   operations  at most 32, applied in this order; a JPEG's EXIF orientation is applied before them:
//     {"resize": {"width": w, "height": h, "fit": "inside" | "cover" | "stretch"}}
//                 width or height may be left out and then follows from the picture's ratio. With both given,
//                 inside (the default) keeps the ratio and fits into the box, cover keeps the ratio, fills the box
//                 and cuts both overhanging sides alike, stretch gives up the ratio. Small pictures grow.
//     {"crop": {"x": x, "y": y, "width": w, "height": h}}
//                 the rectangle must lie within the picture; x and y default to 0
//     {"rotate": {"degrees": d}}
//                 clockwise, -360 to 360. Multiples of 90 are exact; at other angles the picture grows to hold its
//                 corners, and new pixels are transparent (white in a JPEG)
//   format      "jpeg" | "png" | "webp"; default: the format of the source
//   quality     1 to 100, for JPEG and WebP; default 85. PNG is lossless and ignores the quality.
//
// Example: {"url": "https://example.com/cat.jpg", "operations": [{"resize": {"width": 320}}], "format": "webp"}. Any
// other key is refused, so a misspelt key is not silently ignored.
//
// Output: {"width": 320, "height": 213, "format": "webp", "bytes": 9120, "image": "<base64>"}. If the job has an
// s3Config (`s3_upload.h`), "url" of the uploaded object replaces "image". Metadata of the source (EXIF, ICC profile,
// comments) does not pass into the result. An animated WebP file is refused; of an animated PNG only the still picture
// is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "image_format.h"

namespace jobq::image {

enum class Fit { inside, cover, stretch };

/// Sizes in pixels. A side of 0 follows from the ratio; at least one side is set.
struct Resize {
  int width = 0;
  int height = 0;
  Fit fit = Fit::inside;
};

struct Crop {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
};

struct Rotate {
  double degrees = 0;  ///< clockwise
};

using Operation = std::variant<Resize, Crop, Rotate>;

struct ImageRequest {
  std::string file;  ///< the decoded bytes; empty when `url` is set
  std::string url;
  std::vector<Operation> operations;
  std::optional<Format> format;
  int quality = 85;
};

/// Reads and checks the whole input before any work. Any thread. Throws JobFailed with the key and the remedy.
ImageRequest readRequest(std::string_view input);

}  // namespace jobq::image
