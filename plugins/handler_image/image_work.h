// From a file to a file: decode, turn upright, apply the operations in order, encode.
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

/// Any thread, one job at a time on it. No picture on the way has more than `maxPixels` pixels: the file's own header
/// is asked before it is decoded, every target before it is made. Looks at the stop token between the steps. Throws
/// JobFailed.
ImageResult work(std::string_view file, const ImageRequest& request, std::uint64_t maxPixels, std::stop_token stop,
                 const GdMessages& messages);

}  // namespace jobq::image
