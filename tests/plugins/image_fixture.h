// Pictures to send to the image handler, and functions to inspect the returned pictures, both through libgd.
#pragma once

#include <gd.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "jobq/base64.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "jobq/plugin.h"
#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"

namespace jobq::test {

struct DestroyGd {
  void operator()(gdImagePtr image) const { gdImageDestroy(image); }
};
using Gd = std::unique_ptr<gdImage, DestroyGd>;

constexpr int kRed = 0xd01010;
constexpr int kGreen = 0x10b010;
constexpr int kBlue = 0x1010d0;
constexpr int kYellow = 0xd0d010;
constexpr int kClear = 0x7f000000;

/// Makes a picture of red, green / blue, yellow quarters: each turn and each flip looks different.
inline Gd quarters(int width, int height) {
  Gd image(gdImageCreateTrueColor(width, height));
  gdImageAlphaBlending(image.get(), gdEffectReplace);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool right = x >= width / 2;
      const bool low = y >= height / 2;
      gdImageSetPixel(image.get(), x, y, low ? (right ? kYellow : kBlue) : (right ? kGreen : kRed));
    }
  }
  return image;
}

inline std::string ownBytes(void* bytes, int size) {
  std::string copy(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
  gdFree(bytes);
  return copy;
}
inline std::string pngOf(const Gd& image) {
  int size = 0;
  gdImageSaveAlpha(image.get(), 1);
  void* bytes = gdImagePngPtr(image.get(), &size);
  return ownBytes(bytes, size);
}
inline std::string jpegOf(const Gd& image) {
  int size = 0;
  void* bytes = gdImageJpegPtr(image.get(), &size, 95);
  return ownBytes(bytes, size);
}
inline std::string webpOf(const Gd& image) {
  int size = 0;
  void* bytes = gdImageWebpPtrEx(image.get(), &size, gdWebpLossless);
  return ownBytes(bytes, size);
}
inline Gd decodeAs(const std::string& format, std::string bytes) {
  const int size = static_cast<int>(bytes.size());
  if (format == "png") return Gd(gdImageCreateFromPngPtr(size, bytes.data()));
  if (format == "jpeg") return Gd(gdImageCreateFromJpegPtr(size, bytes.data()));
  return Gd(gdImageCreateFromWebpPtr(size, bytes.data()));
}

inline std::string base64Of(std::string_view bytes) { return toBase64(bytes); }

/// The picture returned by the handler.
struct Picture {
  int width = 0;
  int height = 0;
  std::string format;
  std::string file;  ///< empty after an upload
  std::string url;
  Gd image;

  int at(int x, int y) const { return gdImageGetTrueColorPixel(image.get(), x, y); }
};

/// Returns the largest difference of a channel; alpha counts like a colour.
inline int distance(int a, int b) {
  int most = 0;
  for (int shift = 0; shift <= 24; shift += 8) {
    most = std::max(most, std::abs((a >> shift & 0xff) - (b >> shift & 0xff)));
  }
  return most;
}
MATCHER_P2(IsNear, colour, tolerance, "") { return distance(arg, colour) <= tolerance; }

class HandlerImage : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string, std::less<>>;

  explicit HandlerImage(bool allowPrivate = true) : allowPrivate_(allowPrivate) { configure({}); }

  void configure(Settings settings) {
    const testkit::MapConfig config(std::move(settings));
    handler_.reset();
    factory_ = testkit::loadPlugin<HandlerFactory>(JOBQ_PLUGIN_DIR "/libjobq_handler_image.so", "image",
                                                   PluginEnv{config, clock_, log_, ".", allowPrivate_});
    handler_ = factory_->make(HandlerEnv{"endpoint", "worker", {}});
  }

  static std::string inputOf(const std::string& file, const std::string& rest = "") {
    return "{\"image\":\"" + base64Of(file) + "\"" + (rest.empty() ? "" : "," + rest) + "}";
  }

  Picture process(const std::string& input) { return process(input, context_); }
  Picture process(const std::string& input, testkit::FakeJobContext& context) {
    const std::string output = handler_->run(input, context);
    const auto document = std::get<json::Document>(json::read(output));
    Picture picture;
    picture.width = static_cast<int>(json::toInteger(document.find("width").value()).value());
    picture.height = static_cast<int>(json::toInteger(document.find("height").value()).value());
    picture.format = json::toText(document.find("format").value()).value();
    const auto bytes = json::toInteger(document.find("bytes").value()).value();
    if (const auto url = document.find("url")) {
      picture.url = json::toText(*url).value();
      EXPECT_FALSE(document.find("image").has_value());
      return picture;
    }
    picture.file = fromBase64(json::toText(document.find("image").value()).value()).value();
    picture.image = decodeAs(picture.format, picture.file);
    EXPECT_EQ(static_cast<std::int64_t>(picture.file.size()), bytes);
    if (picture.image == nullptr) throw std::runtime_error("the result does not decode");
    EXPECT_EQ(gdImageSX(picture.image.get()), picture.width);
    EXPECT_EQ(gdImageSY(picture.image.get()), picture.height);
    return picture;
  }
  Picture process(const Gd& image, const std::string& rest) { return process(inputOf(pngOf(image), rest)); }
  Picture operate(const Gd& image, const std::string& operations) {
    return process(image, "\"operations\":[" + operations + "]");
  }

  std::string failureOf(const std::string& input) { return failureOf(input, context_); }
  std::string failureOf(const std::string& input, testkit::FakeJobContext& context) {
    try {
      handler_->run(input, context);
    } catch (const JobFailed& failure) {
      return failure.what();
    }
    return "(it did not fail)";
  }

  const bool allowPrivate_;
  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  testkit::FakeJobContext context_;
  std::unique_ptr<HandlerFactory> factory_;
  std::unique_ptr<JobHandler> handler_;
};

}  // namespace jobq::test
