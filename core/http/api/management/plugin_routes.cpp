// Route /v1/plugins: the installed libraries, the rejected ones with reasons, and the settings of each entry.
#include "core/http/api/routes.h"
#include "core/model/script_result.h"
#include "core/plugin/plugin_host.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

void writeOption(json::ObjectWriter& out, const PluginOption& option) {
  out.member("key", option.key);
  out.member("type", option.type);
  out.member("value", option.value);
  out.member("default", option.fallback);
  out.member("range", option.range);
  out.member("help", option.help);
}

// Adds `state`: "loaded", or the bad word with a reason.
void writeState(json::ObjectWriter& out, const Result<void>& loaded, const char* bad) {
  out.member("state", loaded ? "loaded" : bad);
  if (!loaded) out.member("reason", loaded.failure().message());
}

void writeEntry(json::ObjectWriter& out, const PluginHost::Entry& entry, const PluginUse& use) {
  out.member("kind", nameOf(entry.kind));
  out.member("name", entry.name);
  out.member("version", entry.version);
  out.member("selected", use.isSelected(nameOf(entry.kind), entry.name));
  out.array("options", [&entry](json::ArrayWriter& options) {
    for (const PluginOption& option : entry.options) {
      options.object([&option](json::ObjectWriter& object) { writeOption(object, option); });
    }
  });
  out.array("scripts", [&](json::ArrayWriter& scripts) {
    for (const ScriptReport& script : use.scripts(nameOf(entry.kind), entry.name)) {
      scripts.object([&script](json::ObjectWriter& object) {
        object.member("name", script.name);
        writeState(object, scriptResult(script.fault), "faulty");
      });
    }
  });
}

void writeLibrary(json::ObjectWriter& out, const PluginHost::Library& library, const PluginUse& use) {
  out.member("file", library.file.filename().string());
  writeState(out, library.loaded, "rejected");
  out.array("entries", [&](json::ArrayWriter& entries) {
    for (const PluginHost::Entry& entry : library.entries) {
      entries.object([&](json::ObjectWriter& object) { writeEntry(object, entry, use); });
    }
  });
}

}  // namespace

void addPluginRoutes(Router& router, const PluginHost& plugins, const PluginUse& use) {
  router.add({{"GET"}, "/v1/plugins", Scope::read, 1024, false, [&plugins, &use](const ApiRequest&) {
                return ApiResponse{200, json::array([&](json::ArrayWriter& list) {
                                     for (const PluginHost::Library& library : plugins.libraries()) {
                                       list.object([&](json::ObjectWriter& out) { writeLibrary(out, library, use); });
                                     }
                                   })};
              }});
}

}  // namespace jobq
