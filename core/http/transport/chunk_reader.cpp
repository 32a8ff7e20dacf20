#include "core/http/transport/chunk_reader.h"

#include "core/base/hex_digit.h"
#include "core/http/transport/request_head.h"

namespace jobq {
namespace {

constexpr unsigned kMaxSizeDigits = 15;  // far beyond any limit of a body, without overflow
constexpr std::uint32_t kMaxExtension = 4096;
constexpr std::uint32_t kMaxTrailers = 16384;

}  // namespace

std::size_t ChunkReader::skipFraming(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size() && part_ == Part::framing) step(bytes[used++]);
  return used;
}

void ChunkReader::tookData(std::uint64_t bytes) noexcept {
  left_ -= bytes;
  if (left_ > 0) return;
  part_ = Part::framing;
  at_ = At::dataReturn;
}

void ChunkReader::fail(const char* reason) noexcept {
  part_ = Part::broken;
  fault_ = reason;
}

void ChunkReader::step(char c) {
  switch (at_) {
    case At::size: return stepSize(c);
    case At::extension: return stepExtension(c);
    case At::sizeLineFeed: return c == '\n' ? endSizeLine() : fail("the line of a chunk's size must end with CR LF");
    case At::dataReturn:
      at_ = At::dataLineFeed;
      return c == '\r' ? void() : fail("a chunk must have as many bytes as its size says");
    case At::dataLineFeed: at_ = At::size; return c == '\n' ? void() : fail("a chunk must end with CR LF");
    case At::trailer: return stepTrailer(c);
    case At::trailerLineFeed:
      if (c != '\n') return fail("a trailer must end with CR LF");
      if (trailerLine_ == 0) {
        part_ = Part::end;
      } else if (!trailerNamed_) {
        return fail("a trailer must be a name, a colon and a value");
      }
      trailerLine_ = 0;
      trailerNamed_ = false;
      at_ = At::trailer;
      return;
  }
}

void ChunkReader::stepSize(char c) {
  const int digit = hexDigitValue(c);
  if (digit >= 0) {
    if (++digits_ > kMaxSizeDigits) return fail("a chunk's size must have at most 15 digits");
    left_ = left_ * 16 + static_cast<std::uint64_t>(digit);
    return;
  }
  if (digits_ == 0) return fail("a chunk's size must be a hexadecimal number");
  if (c == '\r') {
    at_ = At::sizeLineFeed;
  } else if (c == ';') {
    at_ = At::extension;
  } else {
    fail("a chunk's size must be a hexadecimal number");
  }
}

void ChunkReader::stepExtension(char c) {
  if (c == '\r') {
    at_ = At::sizeLineFeed;
  } else if (++extension_ > kMaxExtension) {
    fail("a chunk's extension must have at most 4 KiB");
  } else if (!isFieldValue({&c, 1})) {
    fail("a chunk's extension must have no control character");
  }
}

void ChunkReader::endSizeLine() {
  digits_ = 0;
  extension_ = 0;
  if (left_ > 0) {
    part_ = Part::data;
  } else {
    at_ = At::trailer;
  }
}

void ChunkReader::stepTrailer(char c) {
  if (++trailer_ > kMaxTrailers) return fail("the trailers must have at most 16 KiB");
  if (c == '\r') {
    at_ = At::trailerLineFeed;
    return;
  }
  ++trailerLine_;
  if (trailerNamed_) {
    if (!isFieldValue({&c, 1})) fail("a trailer's value must have no control character");
  } else if (c == ':' && trailerLine_ > 1) {
    trailerNamed_ = true;
  } else if (!isToken({&c, 1})) {
    fail("a trailer must be a name, a colon and a value");
  }
}

}  // namespace jobq
