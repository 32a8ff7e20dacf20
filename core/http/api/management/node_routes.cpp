// Routes under /v1/nodes: the servers that share the storage.
#include <algorithm>
#include <string>

#include "core/http/api/error_response.h"
#include "core/http/api/routes.h"
#include "jobq/json_writer.h"
#include "jobq/storage.h"

namespace jobq {
namespace {

struct NodeState {
  const NodeInfo& node;
  bool isDrained = false;
};

void writeNode(json::ObjectWriter& out, const NodeState& state, const std::string& self) {
  const NodeInfo& node = state.node;
  out.member("name", node.name);
  out.member("self", node.name == self);
  out.member("alive", node.isAlive);
  out.member("draining", state.isDrained);
  out.member("epoch", node.epoch);
  out.member("beatAge", node.sinceBeat.count());
}

ApiResponse list(const NodeDeps& deps) {
  const std::vector<NodeInfo> nodes = deps.storage.nodes().nodes();
  return {200, json::array([&](json::ArrayWriter& all) {
            for (const NodeInfo& node : nodes) {
              const NodeState state{node, deps.draining.isDrained(node.name)};
              all.object([&](json::ObjectWriter& out) { writeNode(out, state, deps.self); });
            }
          })};
}

/// Orders or ends the drain of the node of the path, and answers the node as it will be.
ApiResponse setDrained(const NodeDeps& deps, const ApiRequest& request, bool isDrained) {
  const std::string& name = request.params.at("name");
  const std::vector<NodeInfo> nodes = deps.storage.nodes().nodes();
  const auto node = std::ranges::find(nodes, name, &NodeInfo::name);
  if (node == nodes.end()) {
    return errorResponse(request.path, 404, "there is no node " + name + "; `GET /v1/nodes` lists the nodes");
  }
  if (isDrained) {
    deps.draining.beginDrain(name);
  } else {
    deps.draining.endDrain(name);
  }
  return {200, json::object([&](json::ObjectWriter& out) { writeNode(out, {*node, isDrained}, deps.self); })};
}

}  // namespace

void addNodeRoutes(Router& router, const NodeDeps& deps) {
  router.add({{"GET"}, "/v1/nodes", Scope::read | Scope::monitor, 1024, false, [deps](const ApiRequest&) {
                return list(deps);
              }});
  router.add({{"POST"}, "/v1/nodes/{name}/drain", Scope::admin, 1024, false, [deps](const ApiRequest& request) {
                return setDrained(deps, request, true);
              }});
  router.add({{"POST"}, "/v1/nodes/{name}/resume", Scope::admin, 1024, false, [deps](const ApiRequest& request) {
                return setDrained(deps, request, false);
              }});
}

}  // namespace jobq
