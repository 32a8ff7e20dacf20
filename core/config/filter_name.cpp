#include "core/config/filter_name.h"

#include <cstddef>
#include <set>
#include <string_view>

#include "core/base/script_name.h"
#include "core/base/words.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::string_view kPluginPrefix = "plugin/";
constexpr std::size_t kMostFilters = 16;

}  // namespace

FilterName parseFilter(const std::string& name) {
  const bool isPlugin = name.starts_with(kPluginPrefix);
  const std::string word = isPlugin ? name.substr(kPluginPrefix.size()) : name;
  if (!isScriptName(word)) {
    throw ConfigError("the filter " + clipped(name) +
                      " has no name that matches [A-Za-z0-9_-]{1,64}: write <script>, or plugin/<filter>");
  }
  return isPlugin ? FilterName{word, ""} : FilterName{"lua", word};
}

void checkFilterNames(const std::vector<std::string>& names) {
  if (names.size() > kMostFilters) throw ConfigError("the list has more than 16 filters");
  std::set<std::string> seen;
  for (const std::string& name : names) {
    (void)parseFilter(name);
    if (!seen.insert(name).second) throw ConfigError("the filter " + name + " appears twice: name it once");
  }
}

}  // namespace jobq
