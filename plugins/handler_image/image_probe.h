// The header of a picture, read before any decoder sees the file: a header that claims 100,000 x 100,000 pixels costs
// nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "image_format.h"

namespace jobq::image {

struct Probe {
  Format format = Format::png;
  std::uint32_t width = 0;   ///< as stored: an orientation of 5 to 8 swaps width and height on the screen
  std::uint32_t height = 0;  ///< width and height are above 0
  int orientation = 1;       ///< EXIF, 1 to 8; always 1 for PNG and WebP

  std::uint64_t pixels() const { return std::uint64_t{width} * height; }
};

/// The reason why a file is refused: a clause after "the picture ...", with the remedy.
struct ProbeFault {
  const char* reason;
};

/// Returns format, size and orientation of a picture, or the reason of a refusal. Accepts any bytes. Any thread; pure.
/// Reads headers only and keeps no view.
std::variant<Probe, ProbeFault> probe(std::string_view bytes);

/// The JPEG part of probe(), for files with the JPEG signature.
std::variant<Probe, ProbeFault> probeJpeg(std::string_view bytes);

}  // namespace jobq::image
