#include "core/config/mistakes.h"

#include "core/base/words.h"

namespace jobq {

std::size_t SettingPlaces::lineOfKey(std::string_view key) const {
  constexpr std::string_view kEndpoint = "endpoint.";
  if (const auto found = lines_.find(key); found != lines_.end()) return found->second;
  const std::size_t dot = key.starts_with(kEndpoint) ? key.find('.', kEndpoint.size()) : std::string_view::npos;
  if (dot == std::string_view::npos) return kNoLine;
  const std::string_view group = key.substr(0, dot + 1);
  const auto other = lines_.lower_bound(group);
  return other != lines_.end() && other->first.starts_with(group) ? other->second : kNoLine;
}

std::size_t SettingPlaces::lineOf(std::string_view sentence, std::string_view key) const {
  const std::size_t line = lineOfKey(sentence.substr(0, sentence.find_first_of(" :,")));
  return line != kNoLine || key.empty() ? line : lineOfKey(key);
}

std::string SettingPlaces::placed(const std::string& sentence, std::size_t line) const {
  if (line == kNoLine) return sentence;
  return (line == 0 ? std::string("--set") : file_ + ":" + std::to_string(line)) + ": " + sentence;
}

std::string SettingPlaces::placed(std::string_view text) const {
  std::string all;
  eachLine(text, [&](std::string_view line) {
    if (!all.empty()) all += '\n';
    all += placed(std::string(line), lineOf(line));
  });
  return all;
}

void Mistakes::add(std::string_view sentences, std::string_view key) {
  eachLine(sentences, [&](std::string_view line) { addAt(places_.lineOf(line, key), std::string(line)); });
}

void Mistakes::addAt(std::size_t line, const std::string& sentence) {
  if (!isFull()) found_.emplace(line, places_.placed(sentence, line));
}

void Mistakes::throwAny() const {
  std::string all;
  std::size_t named = 0;
  for (const auto& [line, sentence] : found_) {
    if (named++ == kMost) {
      all += "\nthere are more mistakes: mend these first";
      break;
    }
    all += (all.empty() ? "" : "\n") + sentence;
  }
  if (!all.empty()) throw ConfigError(all);
}

}  // namespace jobq
