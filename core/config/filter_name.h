// The meaning of a filter's name, as endpoints name filters (`filters = require_fields, plugin/ours`).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace jobq {

/// The parts of a filter's name.
struct FilterName {
  std::string plugin;  ///< entry of kind filter; `lua` runs scripts
  std::string script;  ///< empty for `plugin/<filter>`
};

/// Fails, with one sentence, if the name is not well-formed.
Result<FilterName> parseFilter(const std::string& name);

/// Fails, with one sentence, if the filters of an endpoint are too many, or if a name is not well-formed or comes
/// twice.
Result<void> checkFilterNames(const std::vector<std::string>& names);

}  // namespace jobq
