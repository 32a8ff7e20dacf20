// Reads numbers from the bytes of a file. Bytes beyond the end read as 0: callers check lengths where needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace jobq::image {

/// A view of the bytes of a file. Borrows the bytes, which must outlive the object.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t size() const { return bytes_.size(); }
  std::uint32_t byte(std::size_t at) const { return at < bytes_.size() ? static_cast<unsigned char>(bytes_[at]) : 0U; }
  /// Returns the big-endian number of `count` bytes at `at`; `count` is 1 to 4.
  std::uint32_t big(std::size_t at, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | byte(at + i);
    return value;
  }
  /// Returns the little-endian number of `count` bytes at `at`; `count` is 1 to 4.
  std::uint32_t little(std::size_t at, std::size_t count) const {
    std::uint32_t value = 0;
    for (std::size_t i = count; i > 0; --i) value = value << 8 | byte(at + i - 1);
    return value;
  }
  /// Returns up to `count` bytes at `at`, fewer at the end of the file.
  std::string_view text(std::size_t at, std::size_t count) const {
    return at <= bytes_.size() ? bytes_.substr(at, count) : std::string_view();
  }

 private:
  std::string_view bytes_;
};

}  // namespace jobq::image
