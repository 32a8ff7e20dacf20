// What an image job asks for. The input is one JSON object:
//
//   image       base64 of a JPEG, PNG or WebP file (RFC 4648, padded, no line breaks)   exactly one
//   url         http or https address of such a file                                    of the two
//   operations  at most 32, applied in this order; a JPEG's EXIF orientation is applied before them:
//     {"resize": {"width": w, "height": h, "fit": "inside" | "cover" | "stretch"}}
//                 one of width and height may be left out: it follows from the picture's ratio. Both given,
//                 inside (the default) keeps the ratio and fits into the box, cover keeps it and fills the box,
//                 cutting what stands over on both sides alike, stretch gives up the ratio. Small pictures grow.
//     {"crop": {"x": x, "y": y, "width": w, "height": h}}
//                 the rectangle must lie within the picture; x and y default to 0
//     {"rotate": {"degrees": d}}
//                 clockwise, -360 to 360. Multiples of 90 are exact; for others the picture grows to hold its corners,
//                 and what is new is transparent (white in a JPEG)
//   format      "jpeg" | "png" | "webp"; default: the source's own
//   quality     1 to 100, of JPEG and WebP; default 85. PNG is without loss and does not look at it.
//
// Example: {"url": "https://example.com/cat.jpg", "operations": [{"resize": {"width": 320}}], "format": "webp"}
// Any other key is refused, so that a misspelt one is not silently ignored.
//
// Output: {"width": 320, "height": 213, "format": "webp", "bytes": 9120, "image": "<base64>"}; when the job has an
// s3Config (s3_upload.h), "url" of the uploaded object stands in the place of "image". Metadata of the source (EXIF,
// ICC profile, comments) does not pass into the result, and of an animation only still files are taken.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "image_format.h"

namespace jobq::image {

enum class Fit { inside, cover, stretch };

/// In pixels; 0 follows from the ratio. At least one is set.
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

/// Reads and checks the whole input before anything is done. Any thread. Throws JobFailed naming the key and the
/// remedy.
ImageRequest readRequest(std::string_view input);

}  // namespace jobq::image
