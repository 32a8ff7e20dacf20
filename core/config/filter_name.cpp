#include "core/config/filter_name.h"

#include <cstddef>
#include <set>
#include <string_view>

#include "core/base/words.h"
#include "core/model/script_name.h"

namespace jobq {
namespace {

constexpr std::string_view kPluginPrefix = "plugin/";
constexpr std::size_t kMostFilters = 16;

}  // namespace

Result<FilterName> parseFilter(const std::string& name) {
  const bool isPlugin = name.starts_with(kPluginPrefix);
  const std::string word = isPlugin ? name.substr(kPluginPrefix.size()) : name;
  if (!isScriptName(word)) {
    return invalid(
        "the filter " + clipped(name) +
        " is not a name of a filter: write <script> or plugin/<filter>, with 1 to 64 letters, digits, '-' and '_'");
  }
  return isPlugin ? FilterName{word, ""} : FilterName{"lua", word};
}

Result<void> checkFilterNames(const std::vector<std::string>& names) {
  if (names.size() > kMostFilters)
    return invalid("the list has more than " + std::to_string(kMostFilters) + " filters");
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (const auto parsed = parseFilter(name); !parsed) return parsed.failure();
    if (!seen.insert(name).second) return invalid("the filter " + name + " appears twice: name it once");
  }
  return {};
}

}  // namespace jobq
