// A picture in memory: libgd's true colour with alpha.
#pragma once

#include <gd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gd_messages.h"
#include "image_format.h"
#include "image_probe.h"

namespace jobq::image {

/// An exact turn or flip. The pixel at (x, y) of the result comes from the source, with coordinates swapped first if
/// `transpose` is set, then mirrored.
struct Turn {
  bool transpose = false;
  bool flipX = false;
  bool flipY = false;

  bool changesNothing() const { return !transpose && !flipX && !flipY; }
};

/// Owns its pixels; movable, not copyable. Not thread-safe. Sizes are in pixels; callers keep sizes within bounds.
/// Every method returning a picture throws JobFailed when memory runs out.
class Picture {
 public:
  /// Decodes a file with an already probed header. Throws JobFailed if the file is damaged or cut off. The EXIF
  /// orientation of a JPEG is not applied.
  static Picture decode(std::string_view bytes, const Probe& probe, const GdMessages& messages);
  /// Returns a fully transparent picture.
  static Picture blank(int width, int height);

  int width() const { return gdImageSX(image_.get()); }
  int height() const { return gdImageSY(image_.get()); }
  gdImagePtr get() const { return image_.get(); }
  /// Returns a row of pixels in libgd's form: alpha (0 opaque to 127), red, green, blue, a byte each.
  int* row(int y) const { return image_->tpixels[y]; }

  /// Returns the turned or flipped picture.
  Picture turned(Turn turn) const;
  /// Returns the rectangle, which must lie within the picture.
  Picture cropped(int x, int y, int width, int height) const;
  /// Returns the given part, resampled by area to `width` x `height`.
  Picture resampled(int x, int y, int partWidth, int partHeight, int width, int height) const;
  /// Returns the picture turned clockwise, with bilinear sampling. The result holds the corners; new pixels are
  /// transparent.
  Picture rotated(double degrees) const;

  /// Returns the encoded file. A JPEG is flattened on white. Throws JobFailed if the format cannot hold the picture.
  std::string encode(Format format, int quality) const;

 private:
  struct Destroy {
    void operator()(gdImagePtr image) const { gdImageDestroy(image); }
  };

  explicit Picture(gdImagePtr image) : image_(image) {}
  Picture flattened() const;
  bool hasAlpha() const;

  std::unique_ptr<gdImage, Destroy> image_;
};

/// The size of the box around a picture turned by `degrees`.
struct Extent {
  double width = 0;
  double height = 0;
};
Extent extentOfRotation(int width, int height, double degrees);

}  // namespace jobq::image
