// Nodes with one common storage of endpoints and templates, and with handlers, policies and filters installed by name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/base/secret_box.h"
#include "core/config/endpoint_spec.h"
#include "core/config/template.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/endpoint_record.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/plugin_resolver.h"
#include "core/endpoints/template_service.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/queue_policy.h"
#include "testkit/temporary_folder.h"
#include "unit_storage.h"

namespace jobq::test {

/// The handler `echo`, and the handler `lua`, which runs the scripts in `scripts`.
class NamedHandlers final : public HandlerFactory {
 public:
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return nullptr; }
  std::optional<std::string> fault(std::string_view script) const override {
    if (script.empty() || scripts.contains(std::string(script))) return std::nullopt;
    return "there is no such script";
  }

  std::set<std::string> scripts;
};

/// Finds the handlers `echo` and `lua`, the policy `arrival`, and no filter. The handler `silent` fails without a
/// reason.
class NamedPlugins final : public PluginResolver {
 public:
  explicit NamedPlugins(const QueuePolicy& policy) : policy_(policy) {}

  Result<HandlerFactory*> handler(const std::string& name) override {
    if (name == "echo" || name == "lua") return &handlers;
    return invalid(name == "silent" ? "" : "there is no handler " + name);
  }
  Result<const QueuePolicy*> policy(const std::string& name) override {
    if (policyOfServerFails) return invalid("the policy of the server refuses its settings");
    if (name.empty() || name == "arrival") return &policy_;
    return invalid("there is no policy " + name);
  }
  FilterPool& filter(const std::string& name) override {
    auto& pool = filters[name];
    if (!pool) pool = std::make_unique<FilterPool>(name, "there is no filter " + name);
    return *pool;
  }
  std::vector<std::string> localImages() const override { return {"plugin/echo"}; }
  const EndpointConfig& defaults() const override { return serverDefaults; }

  NamedHandlers handlers;
  std::map<std::string, std::unique_ptr<FilterPool>> filters;
  EndpointConfig serverDefaults;
  bool policyOfServerFails = false;

 private:
  const QueuePolicy& policy_;
};

struct EndpointFixture {
  /// One node: the known endpoints, and the changes reported to the listener.
  struct Node final : EndpointListener {
    explicit Node(EndpointFixture& world, const std::vector<EndpointSpec>& fixed = {})
        : wall(world.storage.clock),
          registry({world.storage->records(), world.box, world.plugins, world.storage.log, ""}, fixed),
          templates(world.storage->records(), world.box, registry),
          endpoints(world.storage->records(), world.box, registry, wall) {
      registry.setListener(*this);
    }

    void endpointChanged(const EndpointId& id, const EndpointPtr& now) override {
      heard.push_back(id + (now ? " " + std::to_string(now->spec.version) : " gone"));
    }

    const ClockAsWallClock wall;
    std::vector<std::string> heard;
    EndpointRegistry registry;
    TemplateService templates;
    EndpointService endpoints;
  };

  static EndpointSpec fixedEndpoint(const EndpointId& id, const std::string& image = "plugin/echo") {
    EndpointSpec spec = endpointInFile(id);
    spec.image = image;
    return spec;
  }

  /// Creates a template and returns its id.
  static std::string createTemplate(Node& node, const std::string& name, const std::string& image = "plugin/echo") {
    const auto made = node.templates.create(R"({"name":")" + name + R"(","imageName":")" + image + "\"}");
    return made->id;
  }
  /// Creates an endpoint and returns its id.
  static EndpointId createEndpoint(Node& node, const std::string& templateId) {
    const auto made = node.endpoints.create(R"({"templateId":")" + templateId + "\"}");
    return (*made)->spec.id;
  }

  UnitStorage storage;
  const testkit::TemporaryFolder folder;
  const SecretBox box{folder / "secret.key"};
  NamedPlugins plugins{storage.policy};
};

}  // namespace jobq::test
