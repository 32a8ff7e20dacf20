#include "core/http/api/answer_room.h"

#include <algorithm>

namespace jobq {

void AnswerRoom::use(BodyMemory& memory, std::string_view endpoint) {
  if (memory_ != nullptr) return;
  memory_ = &memory;
  endpoint_ = endpoint;
}

bool AnswerRoom::draw(std::uint64_t bytes) {
  const std::uint64_t wanted = kept_ + bytes <= kFree ? 0 : kept_ + 2 * bytes;
  if (!holdAtLeast(wanted)) return false;
  held_.shrinkTo(wanted);
  return true;
}

void AnswerRoom::noteText(std::uint64_t bytes) noexcept { held_.shrinkTo(kept_ + bytes <= kFree ? 0 : kept_ + bytes); }

bool AnswerRoom::holdAtLeast(std::uint64_t bytes) {
  if (memory_ == nullptr || bytes <= held_.amount()) return true;
  return held_.grow(*memory_, endpoint_, bytes - held_.amount());
}

}  // namespace jobq
