#include "core/plugin/plugin_host.h"

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <exception>
#include <system_error>

#include "core/base/words.h"
#include "core/config/mistakes.h"
#include "core/plugin/plugin_file.h"
#include "jobq/abi.h"
#include "jobq/nearest.h"

namespace jobq {
namespace {

using DescribeFunction = const abi::Descriptor*();

// Loads a library for the life of the process, beyond every PluginHost: unloading would remove code still in use by
// objects, threads and exceptions.
const abi::Descriptor* openForever(const std::filesystem::path& file) {
  static auto& kept = *new std::vector<boost::dll::shared_library>;
  try {
    boost::dll::shared_library library(boost::filesystem::path(file.string()),
                                       boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    const abi::Descriptor* descriptor = library.get<DescribeFunction>(abi::kSymbol)();
    kept.push_back(library);
    return descriptor;
  } catch (const std::exception& error) {
    throw Error(std::string("the file cannot be loaded: ") + error.what() +
                ": install the libraries it needs, or rebuild it");
  }
}

std::string entryText(const abi::Entry& entry) {
  return std::string(nameOf(entry.kind)) + " " + entry.name + " " + entry.version;
}

// Throws Error if the descriptor in the loaded library differs from the manifest, which was checked before loading.
void checkDescriptor(const abi::Descriptor& descriptor, const PluginManifest& manifest) {
  if (descriptor.size < abi::kSmallestDescriptor) {
    throw Error("its descriptor has " + std::to_string(descriptor.size) + " bytes, this server needs " +
                std::to_string(abi::kSmallestDescriptor) + ": rebuild the plugin");
  }
  PluginManifest loaded = parseManifest(descriptor.fingerprint);
  loaded.fields["minor"] = std::to_string(descriptor.minor);
  const bool same =
      std::includes(manifest.fields.begin(), manifest.fields.end(), loaded.fields.begin(), loaded.fields.end());
  std::vector<std::string> entries;
  for (std::size_t i = 0; i < descriptor.entryCount; ++i) entries.push_back(entryText(descriptor.entries[i]));
  if (!same || entries != manifest.entries) throw Error("its descriptor and its manifest differ: rebuild the plugin");
}

// Returns `<kind>.<name>.`, or `<name>.` if the library offers the name in several kinds: all kinds then share one
// group of settings.
std::string prefixOf(const abi::Descriptor& library, const abi::Entry& entry) {
  const auto namesakes =
      std::count_if(library.entries, library.entries + library.entryCount,
                    [&](const abi::Entry& other) { return std::string_view(other.name) == entry.name; });
  return (namesakes > 1 ? "" : std::string(nameOf(entry.kind)) + ".") + entry.name + ".";
}

}  // namespace

void PluginHost::load(const std::vector<std::filesystem::path>& folders) {
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("libjobq_") && name.ends_with(".so")) files.push_back(file.path());
    }
    if (error) {
      log_.write(LogLevel::warning, "plugin.path", "plugins.path " + folder.string() + ": " + error.message());
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) {
      Library library{file, {}, {}};
      loadFile(library);
      libraries_.push_back(std::move(library));
    }
  }
}

void PluginHost::loadFile(Library& library) {
  try {
    const PluginManifest manifest = readPluginFile(library.file);
    checkManifest(manifest);
    const abi::Descriptor* descriptor = openForever(library.file);
    checkDescriptor(*descriptor, manifest);
    for (std::size_t i = 0; i < descriptor->entryCount; ++i) {
      const abi::Entry& code = descriptor->entries[i];
      Entry entry{code.kind, code.name, code.version, prefixOf(*descriptor, code), {}, &code};
      if (find(entry.kind, entry.name) != nullptr) {
        throw Error("another library offers " + entryText(code) + " already: remove one of the two");
      }
      const std::map<std::string, std::string> defaults;
      const DeclaredConfig declaring(entry.prefix, defaults);
      code.declare(declaring);
      entry.options = declaring.options();
      for (PluginOption& option : entry.options) {
        const auto set = settings_.find(option.key);
        if (set != settings_.end()) option.value = shownValue(option.type, set->second);
      }
      library.entries.push_back(std::move(entry));
    }
  } catch (const std::exception& error) {
    library.entries.clear();
    library.loaded = invalid(error.what());
    log_.write(LogLevel::warning, "plugin.rejected",
               library.file.filename().string() + ": " + library.loaded.failure().message());
  }
}

void PluginHost::checkSettings() const {
  std::vector<std::string> known;
  for (const Library& library : libraries_) {
    for (const Entry& entry : library.entries) {
      for (const PluginOption& option : entry.options) known.push_back(option.key);
    }
  }
  const SettingPlaces places;
  Mistakes mistakes(places);
  for (const auto& [key, value] : settings_) {
    if (mistakes.isFull()) break;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    mistakes.add(key + " is not a setting of any installed plugin" + nearestHint(clipped(key), known));
  }
  mistakes.throwAny();
}

void PluginHost::checkValues(PluginKind kind, std::string_view name) const {
  const Entry& entry = *find(kind, name);
  const SettingPlaces places;
  Mistakes mistakes(places);
  mistakes.collect([&] { entry.code->declare(DeclaredConfig(entry.prefix, settings_)); });
  if (mistakes.isEmpty()) return;
  // The plugin has refused its first wrong value. Each value alone shows the others.
  for (const PluginOption& option : entry.options) {
    const auto set = settings_.find(option.key);
    if (set == settings_.end()) continue;
    const std::map<std::string, std::string> alone{*set};
    mistakes.collect([&] { entry.code->declare(DeclaredConfig(entry.prefix, alone)); });
  }
  mistakes.throwAny();
}

const PluginHost::Entry* PluginHost::find(PluginKind kind, std::string_view name) const {
  for (const Library& library : libraries_) {
    for (const Entry& entry : library.entries) {
      if (entry.kind == kind && entry.name == name) return &entry;
    }
  }
  return nullptr;
}

std::string PluginHost::absence(PluginKind kind, std::string_view name) const {
  std::string there;
  std::string rejected;
  for (const Library& library : libraries_) {
    for (const Entry& entry : library.entries) {
      if (entry.kind == kind) there += (there.empty() ? "" : ", ") + entry.name;
    }
    if (!library.loaded && library.file.filename().string().find(name) != std::string::npos) {
      rejected = "; " + library.file.filename().string() + " was rejected: " + library.loaded.failure().message();
    }
  }
  return "there is no " + std::string(nameOf(kind)) + " plugin named " + std::string(name) +
         " (there are: " + (there.empty() ? "none" : there) + ")" + rejected;
}

const PluginHost::Entry& PluginHost::existing(PluginKind kind, std::string_view name) const {
  const Entry* const entry = find(kind, name);
  if (entry == nullptr) throw ConfigError(absence(kind, name));
  return *entry;
}

std::optional<std::vector<CheckResult>> PluginHost::probe(PluginKind kind, std::string_view name, const Deps& around,
                                                          Log& log) const {
  const Entry& entry = existing(kind, name);
  if (entry.code->probe == nullptr) return std::nullopt;
  const DeclaredConfig config(entry.prefix, settings_);
  return entry.code->probe(
      PluginEnv{config, around.clock, log, around.dataDir, around.allowPrivateAddresses, {}, around.receivers});
}

std::unique_ptr<Plugin> PluginHost::createAny(PluginKind kind, std::string_view name, const Deps& around,
                                              Log& log) const {
  const Entry& entry = existing(kind, name);
  if (kind == PluginKind::storage && around.receivers == nullptr) {
    throw ConfigError("a storage needs the names of webhook receivers, which this program does not have");
  }
  const DeclaredConfig config(entry.prefix, settings_);
  const auto& scripts = kind == PluginKind::admissionFilter ? around.filterScripts : around.handlerScripts;
  return std::unique_ptr<Plugin>(entry.code->create(
      PluginEnv{config, around.clock, log, around.dataDir, around.allowPrivateAddresses, scripts, around.receivers}));
}

}  // namespace jobq
