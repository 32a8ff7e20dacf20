// The table of the server's settings. A new setting is a new row; core/decisions/operations.md says what follows from a
// row.
#pragma once

#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/limits.h"
#include "core/config/setting.h"

namespace jobq {

/// Settings of one subject: a heading of etc/README.md.
struct SettingSection {
  std::string title;
  std::vector<Setting<Config>> settings;
  std::vector<Setting<LimitSetting>> ofOperations{};  ///< `limits.<operation>.<name>`, for each operation of the API
};

/// Returns all settings of the server itself, in the order of etc/README.md; constant. The settings of an endpoint are
/// rows of endpointFields(), those of a plugin are declared by the plugin.
const std::vector<SettingSection>& serverSettings();

}  // namespace jobq
