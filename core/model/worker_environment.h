// The environment of a remote worker: the variables from which the workers of public SDKs and jobq-worker learn their
// server (core/http/GUIDE.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"

namespace jobq {

/// Returns the variables of a worker, names and values. `base` is the address of the endpoint, such as
/// "http://127.0.0.1:8000/v2/echo"; `key` is its API key.
std::vector<std::pair<std::string, std::string>> workerEnvironment(const std::string& base, const EndpointId& endpoint,
                                                                   const WorkerId& worker, const std::string& key);

}  // namespace jobq
