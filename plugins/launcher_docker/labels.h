// Names in Docker for the containers of a server of jobq.
#pragma once

#include <string>
#include <string_view>

namespace jobq::docker {

inline constexpr const char* kServerLabel = "jobq.server";      ///< the name of the server's data directory
inline constexpr const char* kWorkerLabel = "jobq.worker";      ///< the worker's id
inline constexpr const char* kEndpointLabel = "jobq.endpoint";  ///< the endpoint's id

/// Returns the name of a worker's container. Pure.
inline std::string containerNameOf(std::string_view worker) { return "jobq-" + std::string(worker); }

}  // namespace jobq::docker
