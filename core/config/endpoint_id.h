// The ids that an endpoint may have, in the settings file and in requests.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/result.h"
#include "jobq/job.h"

namespace jobq {

/// Ids that a later management API needs, because it shares /v2 with the queue API (core/decisions/endpoints.md). The
/// name openapi.json needs no place, because an id has no dot.
inline constexpr std::array<std::string_view, 10> kReservedIds{"serverless",      "templates",  "pods",    "clusters",
                                                               "network-volumes", "registries", "catalog", "billing",
                                                               "account",         "docs"};

/// Fails for an id that no endpoint may have. The sentence follows the name of the field.
inline Result<void> checkEndpointId(const EndpointId& id) {
  if (!isIdentifier(id)) return invalid("consists of A-Z a-z 0-9 _ -");
  if (std::find(kReservedIds.begin(), kReservedIds.end(), id) != kReservedIds.end()) {
    return invalid(id + " is reserved for the management API: choose another one");
  }
  return {};
}

}  // namespace jobq
