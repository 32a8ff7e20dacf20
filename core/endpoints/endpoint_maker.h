// Makes an Endpoint from the settings of the API or of the configuration file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_spec.h"
#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"

namespace jobq {

class FilterPool;

/// Finds and makes plugins by name for endpoints. Each function throws ConfigError, with one sentence, if the plugin
/// does not exist.
struct PluginResolver {
  std::function<HandlerFactory&(const std::string& name)> handler;
  std::function<const QueuePolicy&(const std::string& name)> policy;  ///< empty name: policy of the server
  /// Returns a pool for every well-formed name. The pool of a missing filter has a fault and accepts no job.
  std::function<FilterPool&(const std::string& name)> filter;
  std::vector<std::string> filters;  ///< filters of endpoints without filters of their own
  std::string startedAt;             ///< `createdAt` of endpoints of the file: the file holds no time of creation
};

/// The data from which a worker is made.
struct WorkerSpec {
  std::string templateId;
  std::string image;
  std::map<std::string, std::string> env;
};

/// Returns an endpoint in every case: an image unable to run here becomes a fault, and the release of `before`
/// (nullable) stays in use. A release with the version of the former release is the same object, so no worker is
/// replaced.
EndpointPtr makeEndpoint(const EndpointSpec& form, const WorkerSpec& workerSpec, const PluginResolver& resolver,
                         const EndpointPtr& before);

/// Returns the reason why the image cannot run on this server, or nullopt if the image can run here or on remote
/// workers.
std::optional<std::string> imageFault(const std::string& image, const PluginResolver& resolver);

/// Returns the reason why one of the filters cannot run on this server, or nullopt if all filters can run.
std::optional<std::string> filterFault(const std::vector<std::string>& filters, const PluginResolver& resolver);

/// An endpoint in both forms: the description for the API and the object for the server.
struct EndpointEntry {
  EndpointSpec form;
  EndpointPtr endpoint;
  std::uint64_t record = 0;  ///< version of the stored record
};

/// Makes an endpoint of the configuration file. Throws ConfigError if the endpoint cannot run.
EndpointEntry makeStatic(const EndpointConfig& config, const PluginResolver& resolver);

}  // namespace jobq
