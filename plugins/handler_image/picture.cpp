#include "picture.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "jobq/error.h"
#include "png_chunks.h"

namespace jobq::image {

namespace {

struct FreeGd {
  void operator()(void* bytes) const { gdFree(bytes); }
};

gdImagePtr decodeEssentialPng(std::string_view bytes) {
  const auto essential = essentialPng(bytes);
  if (!essential) return nullptr;
  return gdImageCreateFromPngPtr(static_cast<int>(essential->size()), const_cast<char*>(essential->data()));
}

gdImagePtr decodeWithGd(std::string_view bytes, Format format) {
  const int size = static_cast<int>(bytes.size());
  void* data = const_cast<char*>(bytes.data());  // libgd's C interface only reads the data
  switch (format) {
    case Format::jpeg: return gdImageCreateFromJpegPtrEx(size, data, 0);
    case Format::png: return decodeEssentialPng(bytes);
    case Format::webp: return gdImageCreateFromWebpPtr(size, data);
  }
  return nullptr;
}

void* encodeWithGd(gdImagePtr image, Format format, int quality, int& size) {
  constexpr int kDefaultCompression = -1;
  switch (format) {
    case Format::jpeg: return gdImageJpegPtr(image, &size, quality);
    case Format::png: return gdImagePngPtrEx(image, &size, kDefaultCompression);
    case Format::webp: return gdImageWebpPtrEx(image, &size, quality);
  }
  return nullptr;
}

// A PNG without palette may name a colour that counts as transparent; libgd keeps the colour beside the pixels.
void spreadTransparentColour(gdImagePtr image) {
  const int transparent = image->transparent;
  if (transparent < 0) return;
  constexpr int kColour = 0xffffff;
  for (int y = 0; y < gdImageSY(image); ++y) {
    for (int& pixel : std::span(image->tpixels[y], static_cast<std::size_t>(gdImageSX(image)))) {
      if ((pixel & kColour) == (transparent & kColour)) pixel = (pixel & kColour) | gdAlphaTransparent << 24;
    }
  }
  image->transparent = -1;
}

[[noreturn]] void refuseDamaged(Format format) {
  throw JobFailed("the picture is a damaged or incomplete " + std::string(nameOf(format)) +
                  " file; send the whole, unchanged file");
}

}  // namespace

Picture Picture::decode(std::string_view bytes, const Probe& probe, const GdMessages& messages) {
  Picture picture(decodeWithGd(bytes, probe.format));
  gdImagePtr image = picture.get();
  // libjpeg fills missing pixels with grey and only warns.
  if (image == nullptr || messages.mention("Premature end")) refuseDamaged(probe.format);
  if (gdImagePaletteToTrueColor(image) == 0) throw JobFailed("memory ran out while the picture was decoded; try again");
  if (std::int64_t{picture.width()} != probe.width || std::int64_t{picture.height()} != probe.height) {
    refuseDamaged(probe.format);
  }
  spreadTransparentColour(image);
  return picture;
}

Picture Picture::blank(int width, int height) {
  Picture picture(gdImageCreateTrueColor(width, height));
  if (picture.get() == nullptr) {
    throw JobFailed("memory ran out for a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                    " pixels; ask for a smaller one or lower maxPixels");
  }
  gdImageAlphaBlending(picture.get(), gdEffectReplace);
  const int clear = gdTrueColorAlpha(255, 255, 255, gdAlphaTransparent);
  for (int y = 0; y < height; ++y) std::fill_n(picture.row(y), width, clear);
  return picture;
}

bool Picture::hasAlpha() const {
  const auto opaque = [](int pixel) { return gdTrueColorGetAlpha(pixel) == gdAlphaOpaque; };
  for (int y = 0; y < height(); ++y) {
    if (!std::all_of(row(y), row(y) + width(), opaque)) return true;
  }
  return false;
}

Picture Picture::flattened() const {
  Picture flat = blank(width(), height());
  const auto over = [](int colour, int alpha) {
    return (colour * (gdAlphaMax - alpha) + 255 * alpha + gdAlphaMax / 2) / gdAlphaMax;
  };
  for (int y = 0; y < height(); ++y) {
    std::transform(row(y), row(y) + width(), flat.row(y), [over](int pixel) {
      const int alpha = gdTrueColorGetAlpha(pixel);
      return gdTrueColor(over(gdTrueColorGetRed(pixel), alpha), over(gdTrueColorGetGreen(pixel), alpha),
                         over(gdTrueColorGetBlue(pixel), alpha));
    });
  }
  return flat;
}

std::string Picture::encode(Format format, int quality) const {
  if (std::max(width(), height()) > longestSideOf(format)) {
    throw JobFailed("a " + std::string(nameOf(format)) + " can be at most " + std::to_string(longestSideOf(format)) +
                    " pixels wide or high, and the result is " + std::to_string(width()) + " x " +
                    std::to_string(height()) + "; resize it or choose another format");
  }
  if (format == Format::jpeg && hasAlpha()) return flattened().encode(format, quality);
  gdImageSaveAlpha(image_.get(), format != Format::jpeg && hasAlpha() ? 1 : 0);
  int size = 0;
  const std::unique_ptr<void, FreeGd> bytes(encodeWithGd(image_.get(), format, quality, size));
  if (bytes == nullptr || size <= 0) {
    throw JobFailed("the result could not be written as " + std::string(nameOf(format)) +
                    "; choose another format or a smaller size");
  }
  return std::string(static_cast<const char*>(bytes.get()), static_cast<std::size_t>(size));
}

}  // namespace jobq::image
