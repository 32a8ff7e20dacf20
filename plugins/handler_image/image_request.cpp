#include "image_request.h"

#include "jobq/base64.h"
#include "jobq/error.h"
#include "jobq/fields.h"

namespace jobq::image {

namespace {

constexpr std::size_t kMostOperations = 32;
constexpr std::int64_t kLongestSide = 1'000'000;

Resize readResize(const Fields& fields) {
  fields.allowOnly({"width", "height", "fit"});
  Resize resize;
  resize.width = static_cast<int>(fields.integer("width", 1, kLongestSide).value_or(0));
  resize.height = static_cast<int>(fields.integer("height", 1, kLongestSide).value_or(0));
  resize.fit = fields.choice<Fit>("fit", {{"inside", Fit::inside}, {"cover", Fit::cover}, {"stretch", Fit::stretch}})
                   .value_or(resize.fit);
  if (resize.width == 0 && resize.height == 0) fields.refuse("width", "given, or height, or both");
  return resize;
}

Crop readCrop(const Fields& fields) {
  fields.allowOnly({"x", "y", "width", "height"});
  Crop crop;
  crop.x = static_cast<int>(fields.integer("x", 0, kLongestSide).value_or(0));
  crop.y = static_cast<int>(fields.integer("y", 0, kLongestSide).value_or(0));
  crop.width = static_cast<int>(fields.requiredInteger("width", 1, kLongestSide));
  crop.height = static_cast<int>(fields.requiredInteger("height", 1, kLongestSide));
  return crop;
}

Rotate readRotate(const Fields& fields) {
  fields.allowOnly({"degrees"});
  return Rotate{fields.requiredNumber("degrees", -360, 360)};
}

Operation readOperation(const json::Value& value, std::size_t index) {
  const Fields fields("input.operations[" + std::to_string(index) + "]", value.raw);
  fields.allowOnly({"resize", "crop", "rotate"});
  if (fields.members().size() != 1) {
    throw JobFailed("input.operations[" + std::to_string(index) +
                    "] must have exactly one of the keys resize, crop, rotate; give each operation its own object");
  }
  if (fields.has("resize")) return readResize(fields.requiredObject("resize"));
  if (fields.has("crop")) return readCrop(fields.requiredObject("crop"));
  return readRotate(fields.requiredObject("rotate"));
}

std::string readFile(const std::string& text) {
  auto decoded = readBase64(text);
  if (const auto* fault = std::get_if<Base64Fault>(&decoded)) {
    throw JobFailed("input.image is not base64: " + std::string(fault->reason) + " (at offset " +
                    std::to_string(fault->offset) +
                    "); send the file's bytes in standard base64, padded, without line breaks or a data: prefix");
  }
  return std::get<std::string>(std::move(decoded));
}

}  // namespace

ImageRequest readRequest(std::string_view input) {
  const Fields fields(input);
  fields.allowOnly({"image", "url", "operations", "format", "quality"});
  if (fields.has("image") == fields.has("url")) {
    throw JobFailed("input must have exactly one of image (base64) and url");
  }
  ImageRequest request;
  if (fields.has("image")) {
    request.file = readFile(fields.requiredText("image"));
  } else {
    request.url = fields.requiredText("url");
  }
  const auto operations = fields.list("operations", "operations", kMostOperations);
  for (std::size_t i = 0; i < operations.size(); ++i) request.operations.push_back(readOperation(operations[i], i));
  if (const auto name = fields.text("format")) {
    request.format = formatNamed(*name);
    if (!request.format) fields.refuse("format", "one of \"jpeg\", \"png\", \"webp\"");
  }
  request.quality = static_cast<int>(fields.integer("quality", 1, 100).value_or(request.quality));
  return request;
}

}  // namespace jobq::image
