// Route /v1/plugins: the installed libraries, the rejected ones with reasons, and the settings of each entry.
#include <Poco/JSON/Array.h>
#include <Poco/JSON/Object.h>

#include <sstream>

#include "core/http/api/routes.h"
#include "core/plugin/plugin_host.h"
#include "jobq/json.h"

namespace jobq {
namespace {

// Reasons quote scripts and files with arbitrary bytes. Poco would write such bytes unchanged.
std::string readable(std::string_view text) {
  const std::string quoted = json::quoted(text);
  return json::decode(std::string_view(quoted).substr(1, quoted.size() - 2));
}

Poco::JSON::Object toJson(const PluginOption& option) {
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("key", option.key);
  object.set("type", option.type);
  object.set("value", readable(option.value));
  object.set("default", option.fallback);
  object.set("range", option.range);
  object.set("help", option.help);
  return object;
}

Poco::JSON::Object toJson(const ScriptReport& script) {
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("name", readable(script.name));
  object.set("state", script.fault.empty() ? "loaded" : "faulty");
  if (!script.fault.empty()) object.set("reason", readable(script.fault));
  return object;
}

Poco::JSON::Object toJson(const PluginHost::Entry& entry, const PluginUse& use) {
  Poco::JSON::Array options;
  for (const PluginOption& option : entry.options) options.add(toJson(option));
  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
  object.set("kind", std::string(nameOf(entry.kind)));
  object.set("name", entry.name);
  object.set("version", entry.version);
  object.set("selected", use.selected(nameOf(entry.kind), entry.name));
  object.set("options", options);
  Poco::JSON::Array scripts;
  for (const ScriptReport& script : use.scripts(nameOf(entry.kind), entry.name)) scripts.add(toJson(script));
  object.set("scripts", scripts);
  return object;
}

}  // namespace

void addPluginRoutes(Router& router, const PluginHost& plugins, PluginUse use) {
  router.add({{"GET"}, "/v1/plugins", Scope::admin, 1024, false, [&plugins, use = std::move(use)](const ApiRequest&) {
                Poco::JSON::Array list;
                for (const PluginHost::Library& library : plugins.libraries()) {
                  Poco::JSON::Array entries;
                  for (const PluginHost::Entry& entry : library.entries) {
                    entries.add(toJson(entry, use));
                  }
                  Poco::JSON::Object object(Poco::JSON_PRESERVE_KEY_ORDER);
                  object.set("file", readable(library.file.filename().string()));
                  object.set("state", library.rejection.empty() ? "loaded" : "rejected");
                  if (!library.rejection.empty()) object.set("reason", readable(library.rejection));
                  object.set("entries", entries);
                  list.add(object);
                }
                std::ostringstream text;
                list.stringify(text);
                return ApiResponse{200, text.str()};
              }});
}

}  // namespace jobq
