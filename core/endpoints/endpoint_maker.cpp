#include "core/endpoints/endpoint_maker.h"

#include <memory>
#include <utility>

#include "core/config/filter_name.h"
#include "core/config/units.h"
#include "core/endpoints/filter_pool.h"
#include "core/model/image.h"
#include "core/model/script_result.h"
#include "jobq/error.h"

namespace jobq {
namespace {

ReleasePtr releaseOf(const EndpointSpec& spec, const std::string& script, HandlerFactory* handler) {
  auto release = std::make_shared<Release>();
  release->version = spec.version;
  release->templateId = spec.templateId;
  release->image = spec.image;
  release->script = script;
  release->handler = handler;
  release->isRemote = handler == nullptr;
  release->env = spec.env;
  release->container = spec.container;
  release->container.image = spec.image;
  return release;
}

// Fails, with one sentence, if the image cannot run on this server. An image that names neither a plugin nor a script
// is one of remote workers.
Result<ReleasePtr> makeRelease(const EndpointSpec& spec, PluginResolver& resolver) {
  if (spec.image.empty()) {
    return invalid("the template " + spec.templateId + " does not exist: give the endpoint another template");
  }
  const Image image = parseImage(spec.image);
  if (image.kind == Image::Kind::remote) return releaseOf(spec, "", nullptr);
  const bool isScript = image.kind == Image::Kind::lua;
  const auto handler = resolver.handler(isScript ? "lua" : image.name);
  if (!handler) return handler.failure();
  const std::string script = isScript ? image.name : "";
  if (const auto good = scriptResult((*handler)->fault(script)); !good) {
    return invalid(spec.image + " cannot run: " + good.failure().message());
  }
  return releaseOf(spec, script, *handler);
}

}  // namespace

EndpointPtr makeEndpoint(const EndpointSpec& spec, PluginResolver& resolver, const EndpointPtr& before) {
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->spec = spec;
  endpoint->defaults = resolver.defaults();
  if (!spec.webhookSecret.empty()) endpoint->webhookKey = units::secret("webhookSecret", spec.webhookSecret);
  for (const std::string& name : spec.filters.value_or(resolver.defaults().filters))
    endpoint->filters.push_back(&resolver.filter(name));
  FieldFaults faults;
  if (before && before->release && before->release->version == spec.version) {
    endpoint->release = before->release;
  } else if (const auto release = makeRelease(spec, resolver)) {
    endpoint->release = *release;
  } else {
    faults = release.failure().faults;
    endpoint->release = before ? before->release : nullptr;
  }
  if (const auto policy = resolver.policy(spec.queuePolicy)) {
    endpoint->policy = *policy;
  } else {
    const FieldFaults& more = policy.failure().faults;
    faults.insert(faults.end(), more.begin(), more.end());
    const auto policyOfServer = resolver.policy("");
    if (!policyOfServer) throw ConfigError(policyOfServer.failure().message());
    endpoint->policy = *policyOfServer;
  }
  if (!faults.empty()) endpoint->runnable = Failure{Failure::Kind::invalid, std::move(faults)};
  return endpoint;
}

EndpointPtr makeStatic(const EndpointSpec& spec, PluginResolver& resolver) {
  if (const auto good = checkImageName(spec.image); !good) {
    throw ConfigError("endpoint." + spec.id + ".image " + good.failure().message());
  }
  if (const auto good = checkFilters(spec.filters.value_or(resolver.defaults().filters), resolver); !good) {
    throw ConfigError("endpoint." + spec.id + ".filters: " + good.failure().message());
  }
  EndpointPtr endpoint = makeEndpoint(spec, resolver, nullptr);
  if (!endpoint->runnable) throw ConfigError("endpoint." + spec.id + ": " + endpoint->runnable.failure().message());
  return endpoint;
}

Result<void> checkImage(const std::string& image, PluginResolver& resolver) {
  EndpointSpec spec;
  spec.image = image;
  if (const auto good = checkRemoteImage(image, resolver.localImages()); !good) {
    return invalid(image + " " + good.failure().message());
  }
  if (const auto release = makeRelease(spec, resolver); !release) return release.failure();
  return {};
}

Result<void> checkFilters(const std::vector<std::string>& filters, PluginResolver& resolver) {
  if (auto good = checkFilterNames(filters); !good) return good;
  for (const std::string& name : filters) {
    if (const auto good = resolver.filter(name).check(); !good) {
      return invalid(name + " cannot run: " + good.failure().message());
    }
  }
  return {};
}

}  // namespace jobq
