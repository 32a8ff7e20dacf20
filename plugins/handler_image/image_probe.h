// What a picture's own header says about it, read before any decoder sees the file: a header that claims 100,000 x
// 100,000 pixels costs nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "image_format.h"

namespace jobq::image {

struct Probe {
  Format format = Format::png;
  std::uint32_t width = 0;   ///< as stored: an orientation of 5 to 8 swaps them on the screen
  std::uint32_t height = 0;  ///< neither is 0
  int orientation = 1;       ///< EXIF, 1 to 8; only JPEGs have another than 1

  std::uint64_t pixels() const { return std::uint64_t{width} * height; }
};

/// Why a file is not taken: a clause that goes on from "the picture ...", remedy included.
struct ProbeFault {
  const char* reason;
};

/// Any bytes, any thread; pure, reads headers only and keeps nothing.
std::variant<Probe, ProbeFault> probe(std::string_view bytes);

/// The JPEG part of probe(); for files that begin with the JPEG signature.
std::variant<Probe, ProbeFault> probeJpeg(std::string_view bytes);

}  // namespace jobq::image
