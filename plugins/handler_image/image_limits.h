// The plugin's options: read once, shared by every worker.
#pragma once

#include <cstdint>

#include "jobq/config.h"
#include "jobq/time.h"

namespace jobq::image {

/// `handler.image.*` in the configuration.
struct ImageLimits {
  explicit ImageLimits(const PluginConfig& config);

  std::uint64_t maxPixels;    ///< of any picture on the way; one costs about 4 bytes a pixel, and two exist at a time
  std::uint64_t maxDownload;  ///< bytes
  Millis fetchTimeout;
  Millis uploadTimeout;
  bool allowPrivate = false;  ///< the host's `net.allowPrivate`, not a key of this plugin
};

}  // namespace jobq::image
