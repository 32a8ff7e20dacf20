// The parts of Picture that move pixels.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "picture.h"

namespace jobq::image {

namespace {

// A sum of weighted pixels. A transparent pixel adds no colour, so edges do not darken.
class Blend {
 public:
  void add(int pixel, double weight) {
    const double opacity = weight * (gdAlphaMax - gdTrueColorGetAlpha(pixel)) / gdAlphaMax;
    opacity_ += opacity;
    red_ += opacity * gdTrueColorGetRed(pixel);
    green_ += opacity * gdTrueColorGetGreen(pixel);
    blue_ += opacity * gdTrueColorGetBlue(pixel);
  }

  int pixel() const {
    const int alpha = gdAlphaMax - static_cast<int>(std::lround(opacity_ * gdAlphaMax));
    if (alpha >= gdAlphaMax) return gdTrueColorAlpha(255, 255, 255, gdAlphaTransparent);
    return gdTrueColorAlpha(channel(red_), channel(green_), channel(blue_), std::max(alpha, 0));
  }

 private:
  int channel(double sum) const { return std::clamp(static_cast<int>(std::lround(sum / opacity_)), 0, 255); }

  double opacity_ = 0;
  double red_ = 0;
  double green_ = 0;
  double blue_ = 0;
};

// Returns the pixel at a point between pixels; points outside are transparent.
int sample(const Picture& picture, double x, double y) {
  if (x <= -1 || y <= -1 || x >= picture.width() || y >= picture.height()) {
    return gdTrueColorAlpha(255, 255, 255, gdAlphaTransparent);
  }
  const int left = static_cast<int>(std::floor(x));
  const int top = static_cast<int>(std::floor(y));
  const double right = x - left;
  const double low = y - top;
  Blend blend;
  const auto add = [&](int column, int line, double weight) {
    if (column < 0 || line < 0 || column >= picture.width() || line >= picture.height()) return;
    blend.add(picture.row(line)[column], weight);
  };
  add(left, top, (1 - right) * (1 - low));
  add(left + 1, top, right * (1 - low));
  add(left, top + 1, (1 - right) * low);
  add(left + 1, top + 1, right * low);
  return blend.pixel();
}

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

}  // namespace

Extent extentOfRotation(int width, int height, double degrees) {
  const double cosine = std::abs(std::cos(radians(degrees)));
  const double sine = std::abs(std::sin(radians(degrees)));
  // A tiny subtraction keeps a rounding error from adding a row of transparent pixels.
  constexpr double kHair = 1e-6;
  return Extent{std::max(1.0, std::ceil(width * cosine + height * sine - kHair)),
                std::max(1.0, std::ceil(width * sine + height * cosine - kHair))};
}

Picture Picture::turned(Turn turn) const {
  const int columns = turn.transpose ? height() : width();
  const int lines = turn.transpose ? width() : height();
  Picture result = blank(columns, lines);
  for (int y = 0; y < lines; ++y) {
    int* out = result.row(y);
    for (int x = 0; x < columns; ++x) {
      const int u = turn.transpose ? y : x;
      const int v = turn.transpose ? x : y;
      out[x] = row(turn.flipY ? height() - 1 - v : v)[turn.flipX ? width() - 1 - u : u];
    }
  }
  return result;
}

Picture Picture::cropped(int x, int y, int width, int height) const {
  Picture result = blank(width, height);
  for (int line = 0; line < height; ++line) std::copy_n(row(y + line) + x, width, result.row(line));
  return result;
}

Picture Picture::resampled(int x, int y, int partWidth, int partHeight, int width, int height) const {
  Picture result = blank(width, height);
  gdImageCopyResampled(result.get(), get(), 0, 0, x, y, width, height, partWidth, partHeight);
  return result;
}

Picture Picture::rotated(double degrees) const {
  const Extent extent = extentOfRotation(width(), height(), degrees);
  Picture result = blank(static_cast<int>(extent.width), static_cast<int>(extent.height));
  const double cosine = std::cos(radians(degrees));
  const double sine = std::sin(radians(degrees));
  for (int y = 0; y < result.height(); ++y) {
    int* out = result.row(y);
    const double down = y + 0.5 - result.height() / 2.0;
    for (int x = 0; x < result.width(); ++x) {
      const double across = x + 0.5 - result.width() / 2.0;
      out[x] = sample(*this, cosine * across + sine * down + width() / 2.0 - 0.5,
                      cosine * down - sine * across + height() / 2.0 - 0.5);
    }
  }
  return result;
}

}  // namespace jobq::image
