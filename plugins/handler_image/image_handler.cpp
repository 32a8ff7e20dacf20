#include "image_handler.h"

#include <optional>

#include "fetch.h"
#include "gd_messages.h"
#include "image_request.h"
#include "image_work.h"
#include "jobq/base64.h"
#include "jobq/json_writer.h"
#include "s3_upload.h"

namespace jobq::image {

namespace {

void report(const GdMessages& messages, JobContext& context) {
  for (const std::string& line : messages.lines()) context.log(LogLevel::warning, line);
}

ImageResult workAndReport(std::string_view file, const ImageRequest& request, const ImageLimits& limits,
                          JobContext& context) {
  const GdMessages messages;
  try {
    ImageResult result = work(file, request, limits.maxPixels, context.stopToken(), messages);
    report(messages, context);
    return result;
  } catch (...) {
    report(messages, context);
    throw;
  }
}

void describe(json::ObjectWriter& out, const ImageResult& result) {
  out.member("width", result.width);
  out.member("height", result.height);
  out.member("format", nameOf(result.format));
  out.member("bytes", result.file.size());
}

}  // namespace

std::string ImageHandler::run(std::string_view input, JobContext& context) {
  const ImageRequest request = readRequest(input);
  std::optional<S3Account> account;
  if (!context.s3Config().empty()) account = readS3Config(context.s3Config());
  const std::string fetched = request.url.empty() ? "" : fetch(request.url, limits_, context.stopToken());
  const ImageResult result = workAndReport(request.url.empty() ? request.file : fetched, request, limits_, context);

  return json::object([&](json::ObjectWriter& out) {
    describe(out, result);
    if (account) {
      out.member("url", upload(*account, context.id(), result.file, result.format, limits_, context.stopToken()));
    } else {
      out.member("image", toBase64(result.file));
    }
  });
}

}  // namespace jobq::image
