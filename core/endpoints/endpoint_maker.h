// Makes an Endpoint from its description by the API or by the configuration file.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/endpoint_spec.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/plugin_resolver.h"

namespace jobq {

/// Returns an endpoint in every case: an image unable to run here becomes a fault, and the release of `before`
/// (nullable) stays in use. A release with the version of the former release is the same object, so no worker is
/// replaced. An empty image stands for a template that does not exist. Throws ConfigError if the policy of the server
/// cannot be made.
EndpointPtr makeEndpoint(const EndpointSpec& spec, PluginResolver& resolver, const EndpointPtr& before);

/// Makes an endpoint of the configuration file. Throws ConfigError if the endpoint cannot run.
EndpointPtr makeStatic(const EndpointSpec& spec, PluginResolver& resolver);

/// Fails, with one sentence, if the image cannot run on this server. Succeeds for a name that is neither a
/// plugin nor a script, nor close to one (checkRemoteImage()), because remote workers take the jobs of such an image.
Result<void> checkImage(const std::string& image, PluginResolver& resolver);

/// Fails, with one sentence, if one of the filters cannot run on this server.
Result<void> checkFilters(const std::vector<std::string>& filters, PluginResolver& resolver);

}  // namespace jobq
