#include "image_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "image_probe.h"
#include "jobq/error.h"
#include "picture.h"

namespace jobq::image {

namespace {

std::string sizeText(double width, double height) {
  return std::to_string(std::llround(width)) + " x " + std::to_string(std::llround(height));
}

// The turns that bring pixels stored under an EXIF orientation of 1 to 8 upright.
constexpr std::array<Turn, 8> kUpright = {{{false, false, false},
                                           {false, true, false},
                                           {false, true, true},
                                           {false, false, true},
                                           {true, false, false},
                                           {true, false, true},
                                           {true, true, true},
                                           {true, true, false}}};
// The turns by 0, 90, 180 and 270 degrees clockwise.
constexpr std::array<Turn, 4> kQuarterTurns = {kUpright[0], kUpright[5], kUpright[2], kUpright[7]};

class ImageEditor {
 public:
  ImageEditor(Picture picture, std::uint64_t maxPixels) : picture_(std::move(picture)), maxPixels_(maxPixels) {}

  void turn(Turn turn) {
    if (!turn.changesNothing()) picture_ = picture_.turned(turn);
  }

  void operator()(const Resize& resize) {
    const double ratio = double(picture_.width()) / picture_.height();
    double width = resize.width > 0 ? resize.width : std::max(1.0, std::round(resize.height * ratio));
    double height = resize.height > 0 ? resize.height : std::max(1.0, std::round(resize.width / ratio));
    const bool bothGiven = resize.width > 0 && resize.height > 0;
    if (bothGiven && resize.fit == Fit::inside) {
      const double scale = std::min(width / picture_.width(), height / picture_.height());
      width = std::clamp(std::round(picture_.width() * scale), 1.0, width);
      height = std::clamp(std::round(picture_.height() * scale), 1.0, height);
    }
    checkPixels("resize", width, height);
    int partWidth = picture_.width();
    int partHeight = picture_.height();
    if (bothGiven && resize.fit == Fit::cover) {
      partWidth = std::clamp(static_cast<int>(std::lround(partHeight * (width / height))), 1, partWidth);
      partHeight = std::clamp(static_cast<int>(std::lround(picture_.width() * (height / width))), 1, partHeight);
    }
    picture_ = picture_.resampled((picture_.width() - partWidth) / 2, (picture_.height() - partHeight) / 2, partWidth,
                                  partHeight, static_cast<int>(width), static_cast<int>(height));
  }

  void operator()(const Crop& crop) {
    if (crop.x + crop.width > picture_.width() || crop.y + crop.height > picture_.height()) {
      throw JobFailed("crop asks for " + sizeText(crop.width, crop.height) + " pixels at " + std::to_string(crop.x) +
                      ", " + std::to_string(crop.y) + " of a picture of " +
                      sizeText(picture_.width(), picture_.height()) + "; choose a rectangle within it");
    }
    picture_ = picture_.cropped(crop.x, crop.y, crop.width, crop.height);
  }

  void operator()(const Rotate& rotate) {
    constexpr double kQuarter = 90;
    const double quarters = rotate.degrees / kQuarter;
    if (quarters == std::round(quarters)) {
      turn(kQuarterTurns[static_cast<std::size_t>((std::lround(quarters) + 4) % 4)]);
      return;
    }
    const Extent extent = extentOfRotation(picture_.width(), picture_.height(), rotate.degrees);
    checkPixels("rotate", extent.width, extent.height);
    picture_ = picture_.rotated(rotate.degrees);
  }

  const Picture& picture() const { return picture_; }

 private:
  // The sides are doubles: a side computed from a ratio may be far beyond the range of int.
  void checkPixels(const char* operation, double width, double height) const {
    if (width * height <= static_cast<double>(maxPixels_)) return;
    throw JobFailed(std::string(operation) + " asks for " + sizeText(width, height) + " pixels, more than maxPixels " +
                    std::to_string(maxPixels_) + "; ask for a smaller picture");
  }

  Picture picture_;
  const std::uint64_t maxPixels_;
};

Probe probeWithin(std::string_view file, std::uint64_t maxPixels) {
  const auto probed = probe(file);
  if (const auto* fault = std::get_if<ProbeFault>(&probed))
    throw JobFailed("the picture " + std::string(fault->reason));
  const Probe& found = std::get<Probe>(probed);
  if (found.pixels() > maxPixels) {
    throw JobFailed("the picture is " + sizeText(found.width, found.height) + " pixels, more than maxPixels " +
                    std::to_string(maxPixels) + "; send a smaller one");
  }
  return found;
}

void checkStop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw JobFailed("the job was stopped while working on the picture");
}

}  // namespace

ImageResult work(std::string_view file, const ImageRequest& request, std::uint64_t maxPixels, std::stop_token stop,
                 const GdMessages& messages) {
  const Probe probed = probeWithin(file, maxPixels);
  checkStop(stop);
  ImageEditor editor(Picture::decode(file, probed, messages), maxPixels);
  editor.turn(kUpright[static_cast<std::size_t>(probed.orientation - 1)]);
  for (const Operation& operation : request.operations) {
    checkStop(stop);
    std::visit(editor, operation);
  }
  checkStop(stop);
  const Format format = request.format.value_or(probed.format);
  const Picture& picture = editor.picture();
  return ImageResult{picture.encode(format, request.quality), format, picture.width(), picture.height()};
}

}  // namespace jobq::image
