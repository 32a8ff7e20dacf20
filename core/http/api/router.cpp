#include "core/http/api/router.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace jobq {
namespace {

constexpr std::string_view kTail = "...}";

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> segments;
  std::size_t from = 1;
  while (from <= path.size()) {
    const std::size_t slash = std::min(path.find('/', from), path.size());
    segments.push_back(path.substr(from, slash - from));
    from = slash + 1;
  }
  return segments;
}

std::optional<std::map<std::string, std::string>> match(const std::vector<std::string>& pattern,
                                                        const std::vector<std::string>& path) {
  const bool hasTail = pattern.back().ends_with(kTail);
  if (pattern.size() > path.size() || (!hasTail && pattern.size() != path.size())) return std::nullopt;
  std::map<std::string, std::string> params;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i].ends_with(kTail)) {
      std::string tail = path[i];
      for (std::size_t rest = i + 1; rest < path.size(); ++rest) tail += "/" + path[rest];
      if (tail.empty()) return std::nullopt;
      params[pattern[i].substr(1, pattern[i].size() - 1 - kTail.size())] = std::move(tail);
    } else if (pattern[i].starts_with('{')) {
      if (path[i].empty()) return std::nullopt;
      params[pattern[i].substr(1, pattern[i].size() - 2)] = path[i];
    } else if (pattern[i] != path[i]) {
      return std::nullopt;
    }
  }
  return params;
}

}  // namespace

void Router::add(Route route) {
  std::vector<std::string> segments = split(route.pattern);
  entries_.push_back({std::move(route), std::move(segments)});
}

std::variant<Router::Match, Router::NoPath, Router::WrongMethod> Router::find(const std::string& method,
                                                                              const std::string& path) const {
  const std::vector<std::string> segments = split(path);
  // A HEAD request is served like GET, and its body is not sent.
  const std::string asked = method == "HEAD" ? "GET" : method;
  std::string allow;
  for (const Entry& entry : entries_) {
    auto params = match(entry.segments, segments);
    if (!params) continue;
    for (const std::string& allowed : entry.route.methods) {
      const bool isAllowed = allowed == asked && (method != "HEAD" || entry.route.hasHead);
      if (isAllowed) return Match{&entry.route, std::move(*params)};
      allow += (allow.empty() ? "" : ", ") + allowed + (allowed == "GET" && entry.route.hasHead ? ", HEAD" : "");
    }
  }
  if (allow.empty()) return NoPath{};
  return WrongMethod{allow};
}

void Router::changeRefusals(std::vector<std::string> segments, std::shared_ptr<const RefusalChange> change) {
  changedSegments_ = std::move(segments);
  change_ = std::move(change);
}

const RefusalChange* Router::refusalsOf(const std::string& path) const {
  for (const std::string& segment : split(path)) {
    if (std::ranges::count(changedSegments_, segment.substr(0, segment.find('&'))) > 0) return change_.get();
  }
  return nullptr;
}

std::vector<Router::Row> Router::rows() const {
  std::vector<Row> rows;
  for (const Entry& entry : entries_) {
    std::string pattern = entry.route.pattern;
    if (pattern.ends_with(kTail)) pattern.replace(pattern.size() - kTail.size(), kTail.size(), "}");
    for (const std::string& method : entry.route.methods) {
      rows.push_back({.call = method + " " + pattern, .scope = entry.route.scope});
    }
  }
  return rows;
}

}  // namespace jobq
