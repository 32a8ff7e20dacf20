// The chunked transfer coding (RFC 9112, 7.1), read piece by piece. Pure and strict, like request_head.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jobq {

/// Takes chunked bytes apart: which of them are the body's, and where the message ends. Extensions and trailers are
/// checked and dropped.
class ChunkReader {
 public:
  /// What the next bytes are.
  enum class Part {
    framing,  ///< sizes, line ends, trailers: give them to skipFraming()
    data,     ///< `dataLeft()` bytes of the body: take them and say tookData()
    end,      ///< of the message
    broken    ///< `fault()` says why; nothing behind it can be trusted
  };

  Part part() const noexcept { return part_; }

  /// Reads framing from the front of `bytes` until the part changes or the bytes end; returns how many it used up.
  std::size_t skipFraming(std::string_view bytes);

  std::uint64_t dataLeft() const noexcept { return left_; }
  /// `bytes` of the body were taken; at most dataLeft().
  void tookData(std::uint64_t bytes) noexcept;

  /// One clause, such as "a chunk's size is not a hexadecimal number".
  const char* fault() const noexcept { return fault_; }

 private:
  enum class At { size, extension, sizeLineFeed, dataReturn, dataLineFeed, trailer, trailerLineFeed };

  void step(char c);
  void stepSize(char c);
  void stepExtension(char c);
  void stepTrailer(char c);
  void endSizeLine();
  void fail(const char* reason) noexcept;

  Part part_ = Part::framing;
  At at_ = At::size;
  std::uint64_t left_ = 0;
  unsigned digits_ = 0;
  std::uint32_t extension_ = 0;    // bytes in this chunk's extension
  std::uint32_t trailer_ = 0;      // bytes in all trailers
  std::uint32_t trailerLine_ = 0;  // bytes in this line of them
  bool trailerNamed_ = false;      // its colon was seen
  const char* fault_ = "";
};

}  // namespace jobq
