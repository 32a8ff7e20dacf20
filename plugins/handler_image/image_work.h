// The work on a file: decode, turn upright, apply the operations in order, encode.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "gd_messages.h"
#include "image_format.h"
#include "image_request.h"

namespace jobq::image {

struct ImageResult {
  std::string file;
  Format format = Format::png;
  int width = 0;
  int height = 0;
};

/// Returns the resulting file. Any thread; `messages` belongs to the calling thread. No intermediate picture has more
/// than `maxPixels` pixels: the header of the file is checked before decoding, every target before its creation. Checks
/// the stop token between the steps. Throws JobFailed.
ImageResult work(std::string_view file, const ImageRequest& request, std::uint64_t maxPixels, std::stop_token stop,
                 const GdMessages& messages);

}  // namespace jobq::image
