// Reads the chunked transfer coding (RFC 9112, 7.1) piece by piece. Pure and strict, like
// `core/http/transport/request_head.h`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace jobq {

/// Separates the body's bytes from the framing and finds the end of the message. Extensions and trailers are checked
/// and dropped. One thread.
class ChunkReader {
 public:
  /// Kind of the next bytes.
  enum class Part {
    framing,  ///< sizes, line ends and trailers, for skipFraming()
    data,     ///< dataLeft() bytes of the body; the caller takes bytes and reports them with tookData()
    end,      ///< end of the message
    broken    ///< fault() has the reason; no later byte can be trusted
  };

  /// Returns the kind of the next bytes.
  Part part() const noexcept { return part_; }

  /// Reads framing from the front of `bytes` until the part changes or the bytes end. Returns the number of bytes used.
  std::size_t skipFraming(std::string_view bytes);

  /// Returns the number of unread bytes of the present chunk.
  std::uint64_t dataLeft() const noexcept { return left_; }
  /// Reports that the caller has taken `bytes` of the body, at most dataLeft().
  void tookData(std::uint64_t bytes) noexcept;

  /// Returns a clause such as "a chunk's size is not a hexadecimal number", and nullopt before a fault.
  std::optional<std::string_view> fault() const noexcept { return fault_; }

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
  std::uint32_t extension_ = 0;    // bytes in the extension of this chunk
  std::uint32_t trailer_ = 0;      // bytes in all trailers
  std::uint32_t trailerLine_ = 0;  // bytes in the present line of the trailers
  bool trailerNamed_ = false;      // the colon of the present line was seen
  std::optional<std::string_view> fault_{};
};

}  // namespace jobq
