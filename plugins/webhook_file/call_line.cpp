#include "call_line.h"

#include <algorithm>

#include "jobq/json_writer.h"

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
  std::string line;
  line.reserve(call.body.size() + 512);
  json::appendObject(line, [&call](json::ObjectWriter& out) {
    out.member("url", call.url);
    out.object("headers", [&call](json::ObjectWriter& headers) {
      for (const auto& [name, value] : call.headers) headers.namedMember(name, value);
    });
    out.raw("body", call.body);
  });
  // The writer escapes line breaks in texts, so that the remaining ones are blanks of the body.
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  line += '\n';
  return line;
}

}  // namespace jobq::webhook_file
