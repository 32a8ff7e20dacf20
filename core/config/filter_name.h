// The meaning of a filter's name, as endpoints name filters (`filters = require_fields, plugin/ours`).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace jobq {

/// The parts of a filter's name.
struct FilterName {
  std::string plugin;  ///< name of the plugin's entry of kind filter; `lua` runs scripts
  std::string script;  ///< empty for `plugin/<filter>`
};

/// Parses `<script>` or `plugin/<filter>`; each name matches [A-Za-z0-9_-]{1,64}. Fails, with one sentence, for any
/// other text. Pure; any thread.
Result<FilterName> parseFilter(const std::string& name);

/// Fails, with one sentence, if the filters of an endpoint are more than 16, or if a name is not well-formed or comes
/// twice.
Result<void> checkFilterNames(const std::vector<std::string>& names);

}  // namespace jobq
