// Makes what the rooms see of an endpoint out of what the API or the file says of it.
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

/// What is installed. They throw ConfigError, with one sentence, when there is no such plugin.
struct PluginResolver {
  std::function<HandlerFactory&(const std::string& name)> handler;
  std::function<const QueuePolicy&(const std::string& name)> policy;  ///< empty name: the server's
  /// Of every well-formed name there is one: what is not there has a fault, and lets no job in.
  std::function<FilterPool&(const std::string& name)> filter;
  std::vector<std::string> filters;  ///< of endpoints that name none
  std::string startedAt;             ///< `createdAt` of the endpoints of the file: nobody knows when they were written
};

/// What the workers of an endpoint are to run.
struct WorkerSpec {
  std::string templateId;
  std::string image;
  std::map<std::string, std::string> env;
};

/// Never fails: what cannot run here has a fault, and the release of `before` (which may be null) goes on. A release
/// whose version is the same as before is the same object, so that no worker is replaced.
EndpointPtr makeEndpoint(const EndpointSpec& form, const WorkerSpec& workerSpec, const PluginResolver& resolver,
                         const EndpointPtr& before);

/// Why this server cannot run the image; nothing when it can, or when remote workers do.
std::optional<std::string> imageFault(const std::string& image, const PluginResolver& resolver);

/// Why this server cannot run one of the filters; nothing when it can run them all.
std::optional<std::string> filterFault(const std::vector<std::string>& filters, const PluginResolver& resolver);

struct EndpointEntry {
  EndpointSpec form;
  EndpointPtr endpoint;
  std::uint64_t record = 0;  ///< the version of its record
};

/// An endpoint of the configuration file. Throws ConfigError when it cannot run.
EndpointEntry makeStatic(const EndpointConfig& config, const PluginResolver& resolver);

}  // namespace jobq
