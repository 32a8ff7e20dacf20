#include "core/model/worker_environment.h"

namespace jobq {
namespace {

/// Milliseconds between two pings of a worker.
constexpr const char* kPingInterval = "10000";

}  // namespace

std::vector<std::pair<std::string, std::string>> workerEnvironment(const std::string& base, const EndpointId& endpoint,
                                                                   const WorkerId& worker, const std::string& key) {
  // The SDK appends `&` and parameters, so each address needs a `?`.
  return {{"RUNPOD_WEBHOOK_GET_JOB", base + "/job-take/$ID?gpu=none"},
          {"RUNPOD_WEBHOOK_POST_OUTPUT", base + "/job-done/$RUNPOD_POD_ID/$ID?gpu=none"},
          {"RUNPOD_WEBHOOK_POST_STREAM", base + "/job-stream/$RUNPOD_POD_ID/$ID?gpu=none"},
          {"RUNPOD_WEBHOOK_PING", base + "/ping/$RUNPOD_POD_ID?gpu=none"},
          {"RUNPOD_POD_ID", worker},
          {"RUNPOD_AI_API_KEY", key},
          {"RUNPOD_ENDPOINT_ID", endpoint},
          {"RUNPOD_PING_INTERVAL", kPingInterval},
          // One of the checks connects to a server in the internet.
          {"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS", "true"},
          // Inputs may name files on servers of the same network. The SDK refuses such names from version 1.12 on.
          {"RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS", "true"}};
}

}  // namespace jobq
