#include "image_probe.h"

#include "byte_reader.h"

namespace jobq::image {

namespace {

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n";
constexpr std::string_view kJpegSignature = "\xff\xd8\xff";

// Layout, in bytes from the beginning of the file: signature (8), length and name of the first chunk (4 each), width at
// 16, height at 20, five more bytes, and a checksum that ends at 33.
std::variant<Probe, ProbeFault> probePng(ByteReader file) {
  constexpr std::size_t kHeaderEnd = 33;
  if (file.size() < kHeaderEnd || file.text(12, 4) != "IHDR") {
    return ProbeFault{"is a PNG whose header is cut or damaged; send the whole, unchanged file"};
  }
  return Probe{Format::png, file.big(16, 4), file.big(20, 4)};
}

// Layout: "RIFF", a size, "WEBP", then the first chunk with its name at 12, its size at 16 and its content from 20.
// - VP8 (lossy): a start code at 23, then width and height with 14 bits each; the two upper bits are a scale.
// - VP8L (lossless): the byte 0x2f, then width - 1 and height - 1 with 14 bits each.
// - VP8X (extended): flags at 20, then width - 1 at 24 and height - 1 at 27 with 24 bits each.
std::variant<Probe, ProbeFault> probeWebp(ByteReader file) {
  constexpr std::uint32_t kAnimated = 0x02;
  const std::string_view kind = file.text(12, 4);
  const std::size_t headerEnd = kind == "VP8L" ? 25 : 30;
  if (file.size() < headerEnd) return ProbeFault{"is a WebP that ends within its header; send the whole file"};
  if (kind == "VP8 " && file.text(23, 3) == "\x9d\x01\x2a") {
    return Probe{Format::webp, file.little(26, 2) & 0x3fff, file.little(28, 2) & 0x3fff};
  }
  if (kind == "VP8L" && file.byte(20) == 0x2f) {
    const std::uint32_t bits = file.little(21, 4);
    return Probe{Format::webp, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1};
  }
  if (kind == "VP8X") {
    if ((file.byte(20) & kAnimated) != 0) {
      return ProbeFault{"is an animated WebP, which is not supported; send a still picture"};
    }
    return Probe{Format::webp, file.little(24, 3) + 1, file.little(27, 3) + 1};
  }
  return ProbeFault{"is a WebP whose header is damaged; send the whole, unchanged file"};
}

std::variant<Probe, ProbeFault> probeBySignature(std::string_view bytes) {
  if (bytes.starts_with(kPngSignature)) return probePng(ByteReader(bytes));
  if (bytes.starts_with(kJpegSignature)) return probeJpeg(bytes);
  // A ByteReader reads nothing beyond the end, so a shorter file does not match.
  if (bytes.starts_with("RIFF") && ByteReader(bytes).text(8, 4) == "WEBP") return probeWebp(ByteReader(bytes));
  return ProbeFault{"is not a JPEG, PNG or WebP file; send one of these"};
}

}  // namespace

std::variant<Probe, ProbeFault> probe(std::string_view bytes) {
  if (bytes.empty()) return ProbeFault{"is empty; send a JPEG, PNG or WebP file"};
  auto result = probeBySignature(bytes);
  const auto* found = std::get_if<Probe>(&result);
  if (found != nullptr && found->pixels() == 0) {
    return ProbeFault{"has a header with a width or height of 0; send the whole, unchanged file"};
  }
  return result;
}

}  // namespace jobq::image
