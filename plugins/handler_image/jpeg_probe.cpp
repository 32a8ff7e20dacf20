#include "byte_reader.h"
#include "exif.h"
#include "image_probe.h"

namespace jobq::image {

namespace {

// A progressive JPEG has about ten scans. Each scan costs a pass over the whole picture, and a tiny file may hold
// hundreds of thousands of scans: a worker would be busy for minutes without a reaction to a stop.
constexpr int kMostScans = 100;

constexpr std::uint32_t kStartOfScan = 0xda;
constexpr std::uint32_t kEndOfImage = 0xd9;
constexpr std::uint32_t kApp1 = 0xe1;

bool isStartOfFrame(std::uint32_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

bool standsAlone(std::uint32_t marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8); }

bool hasTooManyScans(std::string_view bytes, std::size_t from) {
  int scans = 0;
  for (std::size_t at = from; (at = bytes.find("\xff\xda", at)) != std::string_view::npos; at += 2) {
    if (++scans > kMostScans) return true;
  }
  return false;
}

}  // namespace

std::variant<Probe, ProbeFault> probeJpeg(std::string_view bytes) {
  const ByteReader file(bytes);
  int orientation = 1;
  std::size_t at = 2;
  while (at + 4 <= file.size()) {
    if (file.byte(at) != 0xff) return ProbeFault{"is a JPEG whose header is damaged; send the whole, unchanged file"};
    const std::uint32_t marker = file.byte(at + 1);
    if (marker == 0xff) {
      ++at;
      continue;
    }
    if (standsAlone(marker)) {
      at += 2;
      continue;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) break;
    const std::size_t length = file.big(at + 2, 2);
    if (isStartOfFrame(marker)) {
      if (hasTooManyScans(bytes, at)) {
        return ProbeFault{"is a JPEG with more than 100 scans; save it again as a baseline JPEG"};
      }
      if (at + 9 > file.size()) break;
      return Probe{Format::jpeg, file.big(at + 7, 2), file.big(at + 5, 2), orientation};
    }
    if (marker == kApp1 && length >= 2)
      orientation = exifOrientation(file.text(at + 4, length - 2)).value_or(orientation);
    at += 2 + length;
  }
  return ProbeFault{"is a JPEG that ends within its header; send the whole file"};
}

}  // namespace jobq::image
