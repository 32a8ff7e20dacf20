// `jobqctl plugin ...`: lists the plugins of the server, and describes the options of an entry.
#include <optional>
#include <string_view>
#include <variant>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

constexpr const char* kPluginsPath = "/v1/plugins";

std::vector<json::Value> elementsOf(std::string_view text) {
  const auto scanned = json::read(text);
  const auto* document = std::get_if<json::Document>(&scanned);
  return document ? document->elements : std::vector<json::Value>{};
}

std::string textOf(const json::Document& object, std::string_view key) {
  const auto member = object.find(key);
  return member ? json::toText(*member).value_or("") : "";
}

// An entry of a plugin. `raw` is a view of the answer, so that --json can print the entry's bytes unchanged.
struct Entry {
  std::string file;
  std::string kind;
  std::string_view raw;
};

std::vector<Entry> entriesNamed(std::string_view answer, const std::string& name) {
  std::vector<Entry> found;
  for (const json::Value& plugin : elementsOf(answer)) {
    const auto scanned = json::read(plugin.raw);
    const auto* file = std::get_if<json::Document>(&scanned);
    const auto entries = file ? file->find("entries") : std::nullopt;
    if (!entries) continue;
    for (const json::Value& value : elementsOf(entries->raw)) {
      const auto read = json::read(value.raw);
      const auto* entry = std::get_if<json::Document>(&read);
      if (!entry) continue;
      const std::string kind = textOf(*entry, "kind");
      const std::string plain = textOf(*entry, "name");
      if (name == plain || name == kind + "." + plain) found.push_back({textOf(*file, "file"), kind, value.raw});
    }
  }
  return found;
}

Entry onlyEntry(std::string_view answer, const std::string& name) {
  const std::vector<Entry> found = entriesNamed(answer, name);
  if (found.empty()) {
    throw CommandError(ExitCode::refused,
                       "no plugin is named '" + harmless(name) + "'; `jobqctl plugin list` shows them");
  }
  if (found.size() > 1) {
    const std::string choice = found[0].kind == found[1].kind
                                   ? found[0].file + " and " + found[1].file + " both have this name"
                                   : "write " + found[0].kind + "." + name + " or " + found[1].kind + "." + name;
    throw CommandError(ExitCode::usage, "'" + harmless(name) + "' names more than one plugin: " + choice);
  }
  return found[0];
}

std::string selectedCell(const Poco::JSON::Object& entry) { return entry.optValue("selected", false) ? "yes" : "no"; }

// Returns the scripts of an entry that runs scripts.
auto scriptsOf(const Poco::JSON::Object& entry) { return objects(entry.getArray("scripts")); }

// Returns the reason why the file was rejected, or the names of the scripts that cannot run.
std::string reasonCell(const Poco::JSON::Object& plugin, const Poco::JSON::Object& entry) {
  std::string faulty;
  for (const auto& script : scriptsOf(entry)) {
    if (cell(*script, "state") == "faulty") faulty += (faulty.empty() ? "" : ", ") + cell(*script, "name");
  }
  return faulty.empty() ? cell(plugin, "reason") : "faulty scripts: " + faulty;
}

void printOptions(const Poco::JSON::Object& entry, std::ostream& out) {
  const auto options = objects(entry.getArray("options"));
  if (options.empty()) {
    out << "The plugin has no options.\n";
    return;
  }
  Table table({"KEY", "VALUE", "TYPE", "DEFAULT", "RANGE", "HELP"});
  for (const auto& option : options) {
    table.add({cell(*option, "key"), cell(*option, "value"), cell(*option, "type"), cell(*option, "default"),
               cell(*option, "range"), cell(*option, "help")});
  }
  table.print(out);
}

void printScripts(const Poco::JSON::Object& entry, std::ostream& out) {
  const auto scripts = scriptsOf(entry);
  if (scripts.empty()) return;
  Table table({"SCRIPT", "STATE", "REASON"});
  for (const auto& script : scripts) {
    table.add({cell(*script, "name"), cell(*script, "state"), cell(*script, "reason")});
  }
  out << '\n';
  table.print(out);
}

}  // namespace

ExitCode listPlugins(const Invocation& invocation) {
  const std::string answer = invocation.api.get(kPluginsPath);
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"FILE", "STATE", "KIND", "NAME", "VERSION", "SELECTED", "REASON"});
  for (const auto& plugin : objects(readArray(answer))) {
    const std::string file = cell(*plugin, "file");
    const std::string state = cell(*plugin, "state");
    const auto entries = objects(plugin->getArray("entries"));
    if (entries.empty()) table.add({file, state, "-", "-", "-", "-", cell(*plugin, "reason")});
    for (const auto& entry : entries) {
      table.add({file, state, cell(*entry, "kind"), cell(*entry, "name"), cell(*entry, "version"), selectedCell(*entry),
                 reasonCell(*plugin, *entry)});
    }
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode describePlugin(const Invocation& invocation) {
  const std::string answer = invocation.api.get(kPluginsPath);
  const Entry found = onlyEntry(answer, invocation.arguments.words[0]);
  if (printIfJson(invocation, found.raw)) return ExitCode::ok;
  const auto entry = readObject(std::string(found.raw));
  Table about;
  about.add({"name", cell(*entry, "name")});
  about.add({"kind", cell(*entry, "kind")});
  about.add({"version", cell(*entry, "version")});
  about.add({"selected", selectedCell(*entry)});
  about.add({"file", found.file});
  about.print(invocation.out);
  invocation.out << '\n';
  printOptions(*entry, invocation.out);
  printScripts(*entry, invocation.out);
  return ExitCode::ok;
}

}  // namespace jobq::cli
