// Plugin `handler_image`: resizes, crops, rotates and converts pictures. Reading order: `image_request.h` (input and
// output), `image_handler.cpp` (the path of a job), `image_work.cpp` (the operations).
#include "gd_messages.h"
#include "http_client/transfer.h"
#include "image_handler.h"
#include "jobq/abi.h"
#include "jobq/job_handler.h"

namespace jobq::image {

ImageLimits::ImageLimits(const PluginConfig& config)
    : maxPixels(static_cast<std::uint64_t>(
          config.integer("maxPixels", 40'000'000, 1, 1'000'000'000,
                         "most pixels of a picture, as sent and as asked for; costs about 8 bytes a pixel"))),
      maxDownload(config.size("maxDownload", 20U << 20, 1024, 1U << 30, "largest picture fetched from a url")),
      fetchTimeout(config.duration("fetchTimeout", std::chrono::seconds(20), Millis(100), std::chrono::hours(1),
                                   "longest fetch of a picture from a url")),
      uploadTimeout(config.duration("uploadTimeout", std::chrono::seconds(60), Millis(100), std::chrono::hours(1),
                                    "longest upload of a result to a bucket")) {}

class ImageFactory final : public HandlerFactory {
 public:
  using Options = ImageLimits;

  explicit ImageFactory(const PluginEnv& env) : limits_(env.config) {
    limits_.allowPrivate = env.allowPrivateAddresses;
    http_client::prepareTransfers();
    GdMessages::install();
  }

  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return std::make_unique<ImageHandler>(limits_); }

 private:
  ImageLimits limits_;
};

}  // namespace jobq::image

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::HandlerFactory, jobq::image::ImageFactory>("image", "1.0.0")};
JOBQ_PLUGIN(kEntries)
