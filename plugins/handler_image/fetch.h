// The picture at a URL.
#pragma once

#include <stop_token>
#include <string>

#include "image_limits.h"

namespace jobq::image {

/// The body of a 200. Any thread; blocks up to limits.fetchTimeout. Follows 3 redirects. Throws JobFailed naming the
/// URL (without query and password), the reason and the remedy, and when the stop token fires.
std::string fetch(const std::string& url, const ImageLimits& limits, std::stop_token stop);

}  // namespace jobq::image
