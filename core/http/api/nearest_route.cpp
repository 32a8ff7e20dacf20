#include "core/http/api/nearest_route.h"

#include <Poco/String.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "jobq/nearest.h"

namespace jobq {
namespace {

constexpr std::size_t kLongestPath = 256;
constexpr std::size_t kMostSegments = 8;  // no route has more
constexpr std::size_t kFarthest = 6;      // letters
constexpr std::size_t kPlaceholder = 3;

using Segments = std::vector<std::string>;

Segments splitPath(std::string_view path) {
  Segments segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool isPlaceholder(const std::string& segment) { return segment.starts_with('{'); }

// Returns the price of a segment that only the path has, or only the route. A longer word that a path lacks is a better
// reason for another route than letters are.
std::size_t lengthOf(const std::string& segment) {
  constexpr std::size_t kShort = 3;
  if (isPlaceholder(segment)) return kPlaceholder;
  return segment.size() <= kShort ? std::max<std::size_t>(segment.size(), 1) : segment.size() + 2;
}

bool isSlip(const std::string& known, std::size_t edits) { return edits <= std::max<std::size_t>(1, known.size() / 2); }

std::size_t editsOf(const std::string& known, const std::string& given) {
  return editDistance(known, Poco::toLower(given));
}

// Returns the changes of letters that turn one segment into the other.
std::size_t changesOf(const std::string& known, const std::string& given) {
  if (isPlaceholder(known) && !given.empty()) return 1;
  const std::size_t edits = editsOf(known, given);
  return isSlip(known, edits) ? edits : lengthOf(known) + lengthOf(given);
}

// Returns true if a word of the route is a segment of the path, apart from a slip.
bool shareWord(const Segments& known, const Segments& given) {
  return std::ranges::any_of(known, [&given](const std::string& word) {
    return !isPlaceholder(word) && std::ranges::any_of(given, [&word](const std::string& segment) {
      return isSlip(word, editsOf(word, segment));
    });
  });
}

std::size_t changesOf(const Segments& known, const Segments& given) {
  // After round i, `row[j]` has the changes between the first i segments of `known` and the first j of `given`.
  std::vector<std::size_t> row(given.size() + 1);
  for (std::size_t j = 0; j < given.size(); ++j) row[j + 1] = row[j] + lengthOf(given[j]);
  for (const std::string& segment : known) {
    std::size_t diagonal = row[0];
    row[0] += lengthOf(segment);
    for (std::size_t j = 0; j < given.size(); ++j) {
      const std::size_t changed = diagonal + changesOf(segment, given[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j + 1] + lengthOf(segment), row[j] + lengthOf(given[j])});
    }
  }
  return row.back();
}

}  // namespace

std::string nearestRoute(const std::vector<std::string>& routes, std::string_view method, std::string_view path) {
  if (path.size() > kLongestPath) return "";
  const Segments given = splitPath(path);
  if (given.size() > kMostSegments) return "";
  const std::string* best = nullptr;
  std::pair<std::size_t, bool> least(kFarthest, true);  // changes, and whether the methods differ
  for (const std::string& route : routes) {
    const std::size_t blank = route.find(' ');
    const Segments known = splitPath(std::string_view(route).substr(blank + 1));
    if (!shareWord(known, given)) continue;
    const std::pair<std::size_t, bool> changes(changesOf(known, given), route.substr(0, blank) != method);
    if (changes < least || (best == nullptr && changes == least)) {
      least = changes;
      best = &route;
    }
  }
  return best == nullptr ? "" : *best;
}

std::string nearestRoute(const Router& router, std::string_view method, std::string_view path) {
  std::vector<std::string> routes;
  for (const Router::Row& row : router.rows()) routes.push_back(row.call);
  return nearestRoute(routes, method, path);
}

}  // namespace jobq
