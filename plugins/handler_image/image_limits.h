// The options of the plugin: read once, shared by all workers.
#pragma once

#include <cstdint>

#include "jobq/config.h"
#include "jobq/time.h"

namespace jobq::image {

/// The settings `handler.image.*`.
struct ImageLimits {
  explicit ImageLimits(const PluginConfig& config);

  std::uint64_t maxPixels;    ///< pixels of any intermediate picture; a picture costs about 4 bytes a pixel, and two
                              ///< exist at a time
  std::uint64_t maxDownload;  ///< bytes
  Millis fetchTimeout;
  Millis uploadTimeout;
  bool allowPrivate = false;  ///< the server's `net.allowPrivate`, not a setting of the plugin
};

}  // namespace jobq::image
