// A picture in memory: true colour with alpha, as libgd holds it.
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

/// An exact turn or flip: the pixel at (x, y) of the result comes from the source, coordinates swapped first when
/// `transpose`, then mirrored.
struct Turn {
  bool transpose = false;
  bool flipX = false;
  bool flipY = false;

  bool changesNothing() const { return !transpose && !flipX && !flipY; }
};

/// Owns its pixels; moves, never copies. One thread at a time. Sizes are in pixels; callers keep them within bounds.
/// Every maker throws JobFailed when memory runs out.
class Picture {
 public:
  /// Decodes a file whose header was probed. Throws JobFailed when the file is damaged or cut off. A JPEG's EXIF
  /// orientation is not applied.
  static Picture decode(std::string_view bytes, const Probe& probe, const GdMessages& messages);
  /// A fully transparent picture.
  static Picture blank(int width, int height);

  int width() const { return gdImageSX(image_.get()); }
  int height() const { return gdImageSY(image_.get()); }
  gdImagePtr get() const { return image_.get(); }
  /// A pixel as libgd packs it: alpha (0 opaque to 127), red, green, blue, a byte each.
  int* row(int y) const { return image_->tpixels[y]; }

  Picture turned(Turn turn) const;
  Picture cropped(int x, int y, int width, int height) const;
  /// The part of this picture, resampled by area to the size.
  Picture resampled(int x, int y, int partWidth, int partHeight, int width, int height) const;
  /// Clockwise, bilinear; the result holds the corners, and what is new is transparent.
  Picture rotated(double degrees) const;

  /// The file. JPEG is flattened on white. Throws JobFailed when the format cannot hold the picture.
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

/// The size of the box that holds a picture turned by `degrees`.
struct Extent {
  double width = 0;
  double height = 0;
};
Extent extentOfRotation(int width, int height, double degrees);

}  // namespace jobq::image
