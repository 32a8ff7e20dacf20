#include "core/endpoints/endpoint_maker.h"

#include "core/config/units.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/image.h"
#include "jobq/error.h"

namespace jobq {
namespace {

// Returns null for remote workers. Throws ConfigError if the image cannot run on this server.
ReleasePtr makeRelease(const EndpointSpec& form, const WorkerSpec& workerSpec, const PluginResolver& resolver) {
  if (workerSpec.image.empty()) {
    throw ConfigError("the template " + workerSpec.templateId + " does not exist: give the endpoint another template");
  }
  const Image image = parseImage(workerSpec.image);
  if (image.kind == Image::Kind::remote) return nullptr;
  const bool isScript = image.kind == Image::Kind::lua;
  HandlerFactory& handler = resolver.handler(isScript ? "lua" : image.name);
  const std::string script = isScript ? image.name : "";
  if (const std::string fault = handler.fault(script); !fault.empty()) {
    throw ConfigError(workerSpec.image + " cannot run: " + fault);
  }
  auto release = std::make_shared<Release>();
  release->version = static_cast<std::uint64_t>(form.version);
  release->templateId = workerSpec.templateId;
  release->image = workerSpec.image;
  release->script = script;
  release->handler = &handler;
  release->env = workerSpec.env;
  return release;
}

std::optional<Millis> millis(const std::optional<std::int64_t>& number) {
  return number ? std::optional(Millis(*number)) : std::nullopt;
}

void setRules(Endpoint& endpoint, const EndpointSpec& form) {
  const auto narrow = [](std::int64_t number) { return static_cast<std::uint32_t>(number); };
  endpoint.workersMin = narrow(form.workersMin);
  endpoint.workersMax = narrow(form.workersMax);
  endpoint.maxStuck = narrow(form.maxStuck.value_or(form.workersMax));
  endpoint.scaling = {parseScalerType(form.scalerType).value(), narrow(form.scalerValue)};
  endpoint.paused = form.paused;
  endpoint.idleTimeout = Millis(form.idleTimeout * 1'000);
  endpoint.executionTimeout = Millis(form.executionTimeoutMs);
  endpoint.stopGrace = Millis(form.stopGraceMs);
  endpoint.maxAttempts = narrow(form.maxAttempts);
  endpoint.runRetention = millis(form.runRetentionMs);
  endpoint.runsyncRetention = millis(form.runsyncRetentionMs);
  endpoint.limits = form.limits;
  endpoint.webhookKey = form.webhookSecret.empty() ? "" : units::secret("webhookSecret", form.webhookSecret);
}

EndpointSpec staticForm(const EndpointConfig& config) {
  EndpointSpec form;
  form.id = config.id;
  form.name = config.id;
  form.isStatic = true;
  form.workersMin = config.workersMin;
  form.workersMax = config.workersMax;
  if (config.maxStuck) form.maxStuck = *config.maxStuck;
  form.idleTimeout = config.idleTimeout.count() / 1'000;
  form.scalerType = nameOf(config.scaling.type);
  form.scalerValue = config.scaling.value;
  form.executionTimeoutMs = config.executionTimeout.count();
  form.stopGraceMs = config.stopGrace.count();
  form.maxAttempts = config.maxAttempts;
  form.queuePolicy = config.queuePolicy;
  form.filters = config.filters;
  form.env = config.env;
  return form;
}

std::shared_ptr<Endpoint> make(const EndpointSpec& form, const WorkerSpec& workerSpec, const PluginResolver& resolver,
                               const EndpointPtr& before) {
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->id = form.id;
  endpoint->version = static_cast<std::uint64_t>(form.version);
  endpoint->image = workerSpec.image;
  endpoint->env = workerSpec.env;
  setRules(*endpoint, form);
  for (const std::string& name : form.filters.value_or(resolver.filters))
    endpoint->filters.push_back(&resolver.filter(name));
  if (before && before->release && before->release->version == endpoint->version) {
    endpoint->release = before->release;
  } else {
    try {
      endpoint->release = makeRelease(form, workerSpec, resolver);
    } catch (const ConfigError& error) {
      endpoint->fault = error.what();
      endpoint->release = before ? before->release : nullptr;
    }
  }
  try {
    endpoint->policy = &resolver.policy(form.queuePolicy);
  } catch (const ConfigError& error) {
    endpoint->fault += (endpoint->fault.empty() ? "" : "; ") + std::string(error.what());
    endpoint->policy = &resolver.policy("");
  }
  return endpoint;
}

}  // namespace

EndpointPtr makeEndpoint(const EndpointSpec& form, const WorkerSpec& workerSpec, const PluginResolver& resolver,
                         const EndpointPtr& before) {
  return make(form, workerSpec, resolver, before);
}

std::optional<std::string> imageFault(const std::string& image, const PluginResolver& resolver) {
  try {
    (void)makeRelease({}, {"", image, {}}, resolver);
    return std::nullopt;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::optional<std::string> filterFault(const std::vector<std::string>& filters, const PluginResolver& resolver) {
  try {
    checkFilterNames(filters);
    for (const std::string& name : filters) {
      if (const std::string fault = resolver.filter(name).fault(); !fault.empty())
        return name + " cannot run: " + fault;
    }
    return std::nullopt;
  } catch (const ConfigError& error) {
    return error.what();
  }
}

EndpointEntry makeStatic(const EndpointConfig& config, const PluginResolver& resolver) {
  if (const auto fault = imageFault(config.image)) {
    throw ConfigError("endpoint." + config.id + ".image " + *fault);
  }
  if (const auto fault = filterFault(config.filters.value_or(resolver.filters), resolver)) {
    throw ConfigError("endpoint." + config.id + ".filters: " + *fault);
  }
  EndpointSpec form = staticForm(config);
  form.createdAt = resolver.startedAt;
  const auto endpoint = make(form, {"", config.image, config.env}, resolver, nullptr);
  if (!endpoint->fault.empty()) throw ConfigError("endpoint." + config.id + ": " + endpoint->fault);
  endpoint->idleTimeout = config.idleTimeout;  // the file has milliseconds, the form only seconds
  endpoint->webhookKey = config.webhookKey;
  return {std::move(form), endpoint};
}

}  // namespace jobq
