#include "log_frames.h"

#include <algorithm>

namespace jobq::docker {
namespace {

constexpr std::size_t kHead = 8;
constexpr std::size_t kLengthAt = 4;
constexpr const char* kBlanks = " \t\r\n\v\f";

}  // namespace

std::string textOfFrames(std::string_view frames) {
  std::string text;
  while (frames.size() > kHead) {
    std::size_t length = 0;
    for (std::size_t i = kLengthAt; i < kHead; ++i) length = length << 8 | static_cast<unsigned char>(frames[i]);
    frames.remove_prefix(kHead);
    text += frames.substr(0, length);
    frames.remove_prefix(std::min(length, frames.size()));
  }
  return text;
}

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
