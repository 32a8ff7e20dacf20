// Memory of one request for outputs, chunks, log lines and lists on the way into the answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/http/api/body_memory.h"
#include "core/jobs/output_room.h"

namespace jobq {

/// Draws on the memory for answers, which all requests share. Holds the memory until the answer has been sent. One
/// thread at a time.
class AnswerRoom final : public OutputRoom {
 public:
  /// Sets the memory and the endpoint whose share counts; both outlive the room. The first call counts. Without a
  /// memory there is always room.
  void use(BodyMemory& memory, std::string_view endpoint);

  [[nodiscard]] bool draw(std::uint64_t bytes) override;
  /// Notes the end of the reading: the copy in the answer has `bytes`, and the original is freed.
  void noteText(std::uint64_t bytes) noexcept;
  /// Notes bytes beside all later drawings.
  void noteKept(std::uint64_t bytes) noexcept { kept_ = bytes; }

  /// Holds at least `bytes`. Returns false if there is no room; the held memory is unchanged then.
  [[nodiscard]] bool holdAtLeast(std::uint64_t bytes);
  /// Returns the bytes held.
  std::uint64_t held() const noexcept { return held_.amount(); }

 private:
  BodyMemory* memory_ = nullptr;
  std::string_view endpoint_;
  BodyMemory::Reservation held_;
  std::uint64_t kept_ = 0;
};

/// Returns the most bytes that an answer with the lines takes: an escape in JSON has six characters. Each line has a
/// `text`. Pure; any thread.
template <class Lines>
std::size_t mostBytesOfLines(const Lines& lines) {
  constexpr std::size_t kEscape = 6;
  constexpr std::size_t kFrame = 128;
  std::size_t bytes = 2 * kFrame;
  for (const auto& line : lines) bytes += kEscape * line.text.size() + kFrame;
  return bytes;
}

}  // namespace jobq
