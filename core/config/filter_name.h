// The meaning of a filter's name, as endpoints name filters (`filters = require_fields, plugin/ours`).
#pragma once

#include <string>
#include <vector>

namespace jobq {

/// The parts of a filter's name.
struct FilterName {
  std::string plugin;  ///< entry of kind filter; `lua` runs scripts
  std::string script;  ///< empty for `plugin/<filter>`
};

/// Throws ConfigError if the name is not well-formed.
FilterName parseFilter(const std::string& name);

/// Checks the filter names of an endpoint. Throws ConfigError if a name is not well-formed or comes twice.
void checkFilterNames(const std::vector<std::string>& names);

}  // namespace jobq
