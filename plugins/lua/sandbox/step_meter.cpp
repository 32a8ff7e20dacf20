#include "sandbox/step_meter.h"

#include <algorithm>
#include <cstring>

namespace jobq::lua {

// Most texts differ early. The first piece is small, so that few steps are charged for bytes that were not compared.
bool sameText(StepMeter& meter, std::string_view left, std::string_view right) {
  for (std::size_t done = 0, piece = 16; done < left.size(); done += piece, piece *= 2) {
    piece = std::min<std::size_t>({piece, StepMeter::kBatch, left.size() - done});
    meter.charge(piece);
    if (std::memcmp(left.data() + done, right.data() + done, piece) != 0) return false;
  }
  return true;
}

const char* findText(StepMeter& meter, std::string_view text, std::string_view needle) {
  if (needle.empty()) return text.data();
  if (needle.size() > text.size()) return nullptr;
  const char* at = text.data();
  const char* const end = at + (text.size() - needle.size() + 1);
  while (at != end) {
    const std::size_t piece = std::min<std::size_t>(StepMeter::kBatch, static_cast<std::size_t>(end - at));
    const auto* hit = static_cast<const char*>(std::memchr(at, needle.front(), piece));
    meter.charge(hit == nullptr ? piece : static_cast<std::size_t>(hit - at) + 1);
    if (hit == nullptr) {
      at += piece;
    } else if (hit[needle.size() - 1] == needle.back() &&
               sameText(meter, {hit + 1, needle.size() - 1}, needle.substr(1))) {
      return hit;
    } else {
      at = hit + 1;
    }
  }
  return nullptr;
}

}  // namespace jobq::lua
