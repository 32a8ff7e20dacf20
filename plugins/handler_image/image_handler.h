// The image handler of a worker. Input and output are described in `image_request.h`.
#pragma once

#include <string>
#include <string_view>

#include "image_limits.h"
#include "jobq/job_handler.h"

namespace jobq::image {

/// Keeps no state between jobs. Threads and stops: see `jobq/job_handler.h`.
class ImageHandler final : public JobHandler {
 public:
  explicit ImageHandler(const ImageLimits& limits) : limits_(limits) {}

  std::string run(std::string_view input, JobContext& context) override;

 private:
  const ImageLimits limits_;
};

}  // namespace jobq::image
