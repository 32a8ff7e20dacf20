// Fetches the picture at a URL.
#pragma once

#include <stop_token>
#include <string>

#include "image_limits.h"

namespace jobq::image {

/// Returns the body of an answer with status 200. Any thread; blocks up to `limits.fetchTimeout`. Follows up to 3
/// redirects. Throws JobFailed with the URL (without query and password), the reason and the remedy, and also when the
/// stop token fires.
std::string fetch(const std::string& url, const ImageLimits& limits, std::stop_token stop);

}  // namespace jobq::image
