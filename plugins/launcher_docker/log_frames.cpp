#include "log_frames.h"

#include <algorithm>
#include <utility>

namespace jobq::docker {
namespace {

constexpr std::size_t kHead = 8;
constexpr std::size_t kLengthAt = 4;
constexpr const char* kBlanks = " \t\r\n\v\f";

std::size_t lengthIn(std::string_view head) {
  std::size_t length = 0;
  for (const char byte : head.substr(kLengthAt)) length = length << 8 | static_cast<unsigned char>(byte);
  return length;
}

}  // namespace

std::string FrameReader::read(std::string_view piece) {
  std::string text;
  while (!piece.empty()) {
    std::size_t used = 0;
    if (left_ > 0) {
      used = std::min(left_, piece.size());
      text += piece.substr(0, used);
      left_ -= used;
    } else {
      used = std::min(kHead - head_.size(), piece.size());
      head_ += piece.substr(0, used);
      if (head_.size() == kHead) left_ = lengthIn(std::exchange(head_, {}));
    }
    piece.remove_prefix(used);
  }
  return text;
}

std::string textOfFrames(std::string_view frames) { return FrameReader().read(frames); }

std::string lastLineOf(std::string_view text) {
  const std::size_t last = text.find_last_not_of(kBlanks);
  if (last == text.npos) return {};
  text = text.substr(0, last + 1);
  const std::size_t before = text.find_last_of("\r\n");
  return asClause(before == text.npos ? text : text.substr(before + 1));
}

std::string asClause(std::string_view text) {
  std::string clause(text);
  std::replace_if(
      clause.begin(), clause.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  clause.erase(0, clause.find_first_not_of(kBlanks));
  if (clause.size() > kLongestClause) {
    std::size_t end = kLongestClause;
    while (end > 0 && (static_cast<unsigned char>(clause[end]) & 0xc0) == 0x80) --end;
    clause.resize(end);
  }
  clause.erase(clause.find_last_not_of(kBlanks) + 1);
  return clause;
}

}  // namespace jobq::docker
