#include "last_line.h"

#include <algorithm>
#include <cstddef>

#include "jobq/json_scan.h"

namespace jobq::process {

namespace {

constexpr std::size_t kKept = 4096;
constexpr std::size_t kLongest = 200;
constexpr std::string_view kCut = "...";

/// Returns the length of a terminal's control sequence at the start of `text`, such as a colour; 0 without a sequence.
std::size_t controlLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  std::size_t length = 2;
  while (length < text.size() && text[length] >= ' ' && text[length] < '@') ++length;
  return std::min(length + 1, text.size());
}

/// Returns the printable form of the character at the start of `text`, and removes the character. The text is not
/// empty.
std::string_view nextPrintable(std::string_view& text) {
  const std::size_t length = json::detail::utf8Length(text.substr(0, 4));
  const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
  text.remove_prefix(character.size());
  if (length == 0) return "?";
  const bool isControl = static_cast<unsigned char>(character[0]) < ' ' || character[0] == '\x7f';
  return isControl ? " " : character;
}

/// Returns the line with printable characters alone, cut to kLongest bytes, without blanks at both ends.
std::string printable(std::string_view line) {
  std::string out;
  while (!line.empty()) {
    if (const std::size_t control = controlLength(line); control > 0) {
      line.remove_prefix(control);
      continue;
    }
    const std::string_view next = nextPrintable(line);
    if (out.empty() && next == " ") continue;
    if (out.size() + next.size() + kCut.size() > kLongest) return out.append(kCut);
    out += next;
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

}  // namespace

void LastLine::add(std::string_view output) {
  if (output.size() > kKept) output.remove_prefix(output.size() - kKept);
  tail_ += output;
  if (tail_.size() > kKept) tail_.erase(0, tail_.size() - kKept);
}

std::string LastLine::text() const {
  std::string_view rest = tail_;
  while (!rest.empty()) {
    const std::size_t end = rest.find_last_of("\r\n");
    const std::size_t begin = end == std::string_view::npos ? 0 : end + 1;
    std::string line = printable(rest.substr(begin));
    if (!line.empty()) return line;
    rest = rest.substr(0, begin == 0 ? 0 : end);
  }
  return {};
}

}  // namespace jobq::process
