// Memory of one request for what it reads to answer: outputs, chunks, log lines, lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/http/api/body_memory.h"
#include "core/jobs/output_room.h"

namespace jobq {

/// Draws on the memory for answers, which all requests share. Holds the memory until the answer has been sent. One
/// thread at a time.
class AnswerRoom final : public OutputRoom {
 public:
  /// Sets the memory, which outlives the room, and the endpoint whose share counts. The first call counts. Without a
  /// memory there is always room.
  void use(BodyMemory& memory, std::string_view endpoint);

  [[nodiscard]] bool draw(std::uint64_t bytes) override;
  /// Notes that what was read is freed, and that its copy in the answer has `bytes`.
  void noteText(std::uint64_t bytes) noexcept;
  /// Notes bytes that are held besides what is drawn from now on.
  void noteKept(std::uint64_t bytes) noexcept { kept_ = bytes; }

  /// Holds at least `bytes`. Returns false if there is no room; the held memory is unchanged then.
  [[nodiscard]] bool holdAtLeast(std::uint64_t bytes);
  /// Returns the bytes held.
  std::uint64_t held() const noexcept { return held_.amount(); }

 private:
  BodyMemory* memory_ = nullptr;
  std::string endpoint_;
  BodyMemory::Reservation held_;
  std::uint64_t kept_ = 0;
};

}  // namespace jobq
