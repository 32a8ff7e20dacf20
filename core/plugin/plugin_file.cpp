#include "core/plugin/plugin_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "jobq/abi.h"
#include "jobq/file_descriptor.h"

namespace jobq {
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;

[[noreturn]] void refuseElf(const std::string& what) {
  throw Error("the file is not a whole shared library (" + what + "): copy it again or rebuild it");
}

ElfHandle openElf(const FileDescriptor& file) {
  if (elf_version(EV_CURRENT) == EV_NONE) throw Error("libelf is too old for this server: upgrade it");
  ElfHandle elf(elf_begin(file.number(), ELF_C_READ, nullptr));
  if (!elf || elf_kind(elf.get()) != ELF_K_ELF) refuseElf("not an ELF file");
  GElf_Ehdr head;
  if (gelf_getehdr(elf.get(), &head) == nullptr) refuseElf(elf_errmsg(-1));
  if (head.e_type != ET_DYN) refuseElf("not a shared object");
#if defined(__x86_64__)
  constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr int kMachine = EM_AARCH64;
#else
  const int kMachine = head.e_machine;
#endif
  if (head.e_machine != kMachine || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB) {
    throw Error("the file was built for another kind of machine: rebuild it for this one");
  }
  return elf;
}

// Throws Error for a truncated file. dlopen maps the segments without this check, and a truncated file then ends the
// process by SIGBUS.
void checkSegments(Elf* elf, std::uint64_t fileSize) {
  std::size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0 || count == 0) refuseElf("no program headers");
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) refuseElf(elf_errmsg(-1));
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (segment.p_offset > fileSize || segment.p_filesz > fileSize - segment.p_offset)
      refuseElf("the file is truncated");
  }
}

std::string_view sectionBytes(Elf_Scn* section) {
  const Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) refuseElf("a section cannot be read");
  return {static_cast<const char*>(data->d_buf), data->d_size};
}

struct Found {
  std::optional<std::string> manifest;
  std::vector<std::string> symbols;  // defined dynamic symbols with a name that begins with jobq_plugin_v
};

void collectSymbols(Elf* elf, Elf_Scn* section, const GElf_Shdr& head, Found& found) {
  Elf_Data* data = elf_getdata(section, nullptr);
  if (data == nullptr || head.sh_entsize == 0) refuseElf("its dynamic symbols cannot be read");
  for (std::size_t i = 0; i < head.sh_size / head.sh_entsize; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) refuseElf("its dynamic symbols cannot be read");
    const char* name = elf_strptr(elf, head.sh_link, symbol.st_name);
    if (name == nullptr || symbol.st_shndx == SHN_UNDEF) continue;
    if (std::string_view(name).starts_with(abi::kSymbolPrefix)) found.symbols.emplace_back(name);
  }
}

Found searchSections(Elf* elf) {
  Found found;
  std::size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) refuseElf("its section headers are corrupt");
  Elf_Scn* section = nullptr;
  bool any = false;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr head;
    if (gelf_getshdr(section, &head) == nullptr) refuseElf("its section headers are corrupt");
    const char* name = elf_strptr(elf, names, head.sh_name);
    if (name == nullptr) refuseElf("its section headers are corrupt");
    any = true;
    if (head.sh_type == SHT_DYNSYM) collectSymbols(elf, section, head, found);
    if (std::string_view(name) == abi::kSection) found.manifest = std::string(sectionBytes(section));
  }
  if (!any) refuseElf("its section headers are missing");
  return found;
}

void checkSymbol(const Found& found) {
  for (const std::string& symbol : found.symbols) {
    if (symbol == abi::kSymbol) return;
  }
  if (found.symbols.empty()) {
    throw Error(std::string("the file has no symbol ") + abi::kSymbol +
                ": it is not a jobq plugin, or lacks JOBQ_PLUGIN(entries) at its end");
  }
  throw Error("ABI major: the plugin has " + found.symbols.front().substr(std::strlen(abi::kSymbolPrefix)) +
              ", this server " + std::to_string(abi::kMajor) + ": rebuild the plugin against this server's sdk");
}

constexpr std::string_view kLayoutPrefix = "layout.";

bool isLayout(std::string_view field) { return field.starts_with(kLayoutPrefix); }

std::string valueOf(const PluginManifest& manifest, const std::string& field) {
  const auto found = manifest.fields.find(field);
  return found == manifest.fields.end() ? std::string("none") : found->second;
}

[[noreturn]] void refuseField(const std::string& field, const std::string& plugins, const std::string& own) {
  throw Error(field + ": the plugin has " + plugins + ", this server " + own +
              ": rebuild the plugin with the server's compiler, options and sdk");
}

std::uint32_t checkMinor(const PluginManifest& manifest) {
  const std::string text = valueOf(manifest, "minor");
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), minor);
  if (error != std::errc() || end != text.data() + text.size() || minor > abi::kMinor) {
    throw Error("ABI minor: the plugin has " + text + ", this server " + std::to_string(abi::kMinor) +
                ": upgrade the server, or rebuild the plugin against this server's sdk");
  }
  return minor;
}

void checkFingerprint(const PluginManifest& manifest) {
  const PluginManifest own = parseManifest(abi::kFingerprint);
  for (const auto& [field, value] : own.fields) {
    if (valueOf(manifest, field) != value) refuseField(field, valueOf(manifest, field), value);
  }
  for (const auto& [field, value] : manifest.fields) {
    if (field != "minor" && !isLayout(field) && !own.fields.contains(field)) refuseField(field, value, "none");
  }
}

// Returns the layout lines of this server for the kinds offered by the plugin.
PluginManifest ownLayout(const PluginManifest& manifest) {
  std::string text;
  const auto put = [&text](std::string_view part) { text += part; };
  abi::describeLayout(put);
  for (const PluginKind kind : abi::kKinds) {
    const std::string word = std::string(nameOf(kind)) + " ";
    const bool offered = std::any_of(manifest.entries.begin(), manifest.entries.end(),
                                     [&word](const std::string& entry) { return entry.starts_with(word); });
    if (offered) abi::describeLayout(put, kind);
  }
  return parseManifest(text);
}

// Returns whether the layout of a type fits. In an older plugin a type may be absent, or a prefix of the type of this
// server (sdk/include/jobq/abi_layout.h).
bool layoutFits(const std::string* plugins, const std::string& own, bool older) {
  if (plugins == nullptr) return older;
  return older ? own.starts_with(*plugins) : own == *plugins;
}

void checkLayout(const PluginManifest& manifest, std::uint32_t minor) {
  const PluginManifest own = ownLayout(manifest);
  for (const auto& [field, value] : own.fields) {
    const auto found = manifest.fields.find(field);
    const std::string* plugins = found == manifest.fields.end() ? nullptr : &found->second;
    if (!layoutFits(plugins, value, minor < abi::kMinor)) refuseField(field, valueOf(manifest, field), value);
  }
  for (const auto& [field, value] : manifest.fields) {
    if (isLayout(field) && !own.fields.contains(field)) refuseField(field, value, "none");
  }
}

}  // namespace

PluginManifest parseManifest(std::string_view text) {
  PluginManifest manifest;
  text = text.substr(0, text.find('\0'));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = line.substr(equals + 1);
    if (line.substr(0, equals) == "entry") {
      manifest.entries.emplace_back(value);
    } else {
      manifest.fields[std::string(line.substr(0, equals))] = value;
    }
  }
  return manifest;
}

PluginManifest readPluginFile(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.isOpen()) throw Error(std::string("the file cannot be opened: ") + std::strerror(errno));
  const ElfHandle elf = openElf(file);
  checkSegments(elf.get(), std::filesystem::file_size(path));
  const Found found = searchSections(elf.get());
  checkSymbol(found);
  if (!found.manifest) {
    throw Error(std::string("the file has no section ") + abi::kSection +
                ": rebuild the plugin, and keep that section");
  }
  return parseManifest(*found.manifest);
}

void checkManifest(const PluginManifest& manifest) {
  const std::uint32_t minor = checkMinor(manifest);
  checkFingerprint(manifest);
  checkLayout(manifest, minor);
}

}  // namespace jobq
