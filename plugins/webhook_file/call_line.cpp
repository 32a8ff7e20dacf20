#include "call_line.h"

#include <algorithm>

#include "jobq/json.h"

namespace jobq::webhook_file {

namespace {

bool alphanumeric(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

}  // namespace

std::optional<std::string_view> fileNameOf(std::string_view url) {
  constexpr std::string_view kHead = "file:///";
  constexpr std::size_t kLongest = 128;
  if (!url.starts_with(kHead)) return std::nullopt;
  const std::string_view name = url.substr(kHead.size());
  const auto allowed = [](char c) { return alphanumeric(c) || c == '_' || c == '-' || c == '.'; };
  if (name.empty() || name.size() > kLongest || name.front() == '.') return std::nullopt;
  if (!std::all_of(name.begin(), name.end(), allowed)) return std::nullopt;
  return name;
}

std::string lineOf(const WebhookCall& call) {
  std::string line = "{\"url\":";
  line.reserve(call.body.size() + 512);
  json::appendQuoted(line, call.url);
  line += ",\"headers\":{";
  const char* comma = "";
  for (const auto& [name, value] : call.headers) {
    line += comma;
    json::appendQuoted(line, name);
    line += ':';
    json::appendQuoted(line, value);
    comma = ",";
  }
  line += "},\"body\":";
  const std::size_t body = line.size();
  line += call.body;
  std::replace_if(
      line.begin() + static_cast<std::ptrdiff_t>(body), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  line += "}\n";
  return line;
}

}  // namespace jobq::webhook_file
