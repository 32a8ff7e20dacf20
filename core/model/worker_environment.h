// The environment of a remote worker: the variables from which the workers of public SDKs and jobq-worker learn their
// server (core/http/GUIDE.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "jobq/job.h"

namespace jobq {

/// Returns true for 1 to 128 letters, digits and . _ -: the rule for the ids of workers.
inline bool isWorkerName(std::string_view name) { return !name.empty() && name.size() <= 128 && isPlain(name, "._-"); }

/// Returns the variables of a worker, names and values. `base` is the address of the endpoint, such as
/// "http://127.0.0.1:8000/v2/echo"; `key` is its API key.
std::vector<std::pair<std::string, std::string>> workerEnvironment(const std::string& base, const EndpointId& endpoint,
                                                                   const WorkerId& worker, const std::string& key);

}  // namespace jobq
