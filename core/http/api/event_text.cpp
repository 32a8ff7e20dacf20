#include "core/http/api/event_text.h"

#include <Poco/String.h>

#include <algorithm>

namespace jobq {
namespace {

constexpr std::size_t kMostOfAPart = 1UL << 20;
constexpr std::string_view kNextDataLine = "\ndata: ";

/// Removes and returns the text before the next `separator`, without the blanks around it.
std::string_view removeItem(std::string_view& list, char separator) {
  std::string_view item = list.substr(0, list.find(separator));
  list.remove_prefix(std::min(list.size(), item.size() + 1));
  item.remove_prefix(std::min(item.size(), item.find_first_not_of(" \t")));
  return item.substr(0, item.find_last_not_of(" \t") + 1);
}

bool isZeroWeight(std::string_view parameter) {
  const bool isWeight = parameter.starts_with("q=") || parameter.starts_with("Q=");
  return isWeight && parameter.size() > 2 && parameter.find_first_not_of("0.", 2) == std::string_view::npos;
}

bool isEventStream(std::string_view range) {
  if (Poco::icompare(std::string(removeItem(range, ';')), "text/event-stream") != 0) return false;
  while (!range.empty()) {
    if (isZeroWeight(removeItem(range, ';'))) return false;
  }
  return true;
}

}  // namespace

bool acceptsEventStream(std::string_view accept) {
  while (!accept.empty()) {
    if (isEventStream(removeItem(accept, ','))) return true;
  }
  return false;
}

void EventText::add(std::string_view name, std::string_view id, std::string_view data) {
  if (!name.empty()) text_.append("event: ").append(name) += '\n';
  if (!id.empty()) text_.append("id: ").append(id) += '\n';
  text_ += "data: ";
  // The further data lines are written when they leave: a text of line ends alone would grow to seven times its size.
  for (std::size_t end = data.find_first_of("\r\n"); end != std::string_view::npos; end = data.find_first_of("\r\n")) {
    text_.append(data.substr(0, end)) += '\r';
    data.remove_prefix(end + (data.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  text_.append(data) += "\n\n";
}

void EventText::addComment(std::string_view text) { text_.append(": ").append(text) += "\n\n"; }

std::string EventText::removePart() {
  std::string part;
  while (sent_ < text_.size() && part.size() + kNextDataLine.size() < kMostOfAPart) {
    const std::size_t room = kMostOfAPart - kNextDataLine.size() - part.size();
    const std::string_view next = std::string_view(text_).substr(sent_, room);
    const std::string_view line = next.substr(0, next.find('\r'));
    part += line;
    sent_ += line.size();
    if (line.size() == next.size()) continue;
    part += kNextDataLine;
    ++sent_;
  }
  if (sent_ == text_.size()) {
    std::string().swap(text_);  // an assignment would keep the memory
    sent_ = 0;
  }
  return part;
}

}  // namespace jobq
