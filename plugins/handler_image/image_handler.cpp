#include "image_handler.h"

#include <optional>

#include "fetch.h"
#include "gd_messages.h"
#include "image_request.h"
#include "image_work.h"
#include "jobq/base64.h"
#include "jobq/json.h"
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

std::string describe(const ImageResult& result) {
  std::string out =
      "{\"width\":" + std::to_string(result.width) + ",\"height\":" + std::to_string(result.height) + ",\"format\":";
  json::appendQuoted(out, nameOf(result.format));
  return out += ",\"bytes\":" + std::to_string(result.file.size());
}

}  // namespace

std::string ImageHandler::run(std::string_view input, JobContext& context) {
  const ImageRequest request = readRequest(input);
  std::optional<S3Account> account;
  if (!context.s3Config().empty()) account = readS3Config(context.s3Config());
  const std::string fetched = request.url.empty() ? "" : fetch(request.url, limits_, context.stopToken());
  const ImageResult result = workAndReport(request.url.empty() ? request.file : fetched, request, limits_, context);

  std::string out = describe(result);
  if (account) {
    out += ",\"url\":";
    json::appendQuoted(out, upload(*account, context.id(), result.file, result.format, limits_, context.stopToken()));
    return out += "}";
  }
  out += ",\"image\":";
  json::appendQuoted(out, toBase64(result.file));
  return out += "}";
}

}  // namespace jobq::image
