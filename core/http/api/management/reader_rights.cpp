#include "core/http/api/management/reader_rights.h"

#include <set>

namespace jobq {
namespace {

constexpr const char* kHidden = "(hidden)";

}  // namespace

std::vector<EndpointEntryPtr> entriesFor(const ApiRequest& request, const EndpointRegistry& registry,
                                         const ListPart& part) {
  const std::vector<std::string>& bound = request.key->endpoints;
  if (bound.empty()) return registry.entries(part.cursor, part.limit);
  const std::set<std::string> sorted(bound.begin(), bound.end());
  std::vector<EndpointEntryPtr> entries;
  for (auto id = sorted.upper_bound(part.cursor); id != sorted.end() && entries.size() < part.limit; ++id) {
    if (auto entry = registry.entry(*id)) entries.push_back(std::move(entry));
  }
  return entries;
}

void hideValues(const ApiRequest& request, std::map<std::string, std::string>& env) {
  if (request.key->isAdmin()) return;
  for (auto& [name, value] : env) value = kHidden;
}

}  // namespace jobq
