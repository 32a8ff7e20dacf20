// The plugins of endpoints, found and made by name.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/endpoint_spec.h"
#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"

namespace jobq {

class FilterPool;

/// Finds and makes plugins by name for endpoints. The same name leads to the same object, which lives as long as the
/// resolver. Any thread may call all functions.
class PluginResolver {
 public:
  virtual ~PluginResolver() = default;

  /// Fails, with one sentence, if the handler does not exist or refuses its settings.
  virtual Result<HandlerFactory*> handler(const std::string& name) = 0;

  /// Returns the policy of the server for an empty name. Fails, with one sentence, if the policy does not exist or
  /// refuses its settings.
  virtual Result<const QueuePolicy*> policy(const std::string& name) = 0;

  /// Returns a pool for every name: the pool of a missing filter has a fault and accepts no job. A pool is never
  /// removed, so a caller checks a name before (checkFilterNames()).
  virtual FilterPool& filter(const std::string& name) = 0;

  /// Returns the images that run inside this server now, such as plugin/echo and lua/count_stream.
  virtual std::vector<std::string> localImages() const = 0;

  /// Returns the settings of the server for endpoints without a value of their own. Constant.
  virtual const EndpointConfig& defaults() const = 0;
};

}  // namespace jobq
