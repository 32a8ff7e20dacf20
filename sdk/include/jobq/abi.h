// The handshake between the server and a plugin library.
//
// A library proves its fitness before any of its code runs. The name of the exported symbol carries the ABI major, and
// a section `jobq_abi` holds the manifest below as plain text, which the host reads from the file. Only afterwards the
// host loads the library and asks for its descriptor. Every mismatch names the field, both values and the remedy.
//
// A plugin ends with
//
//     constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, EchoFactory>("echo", "1.0.0")};
//     JOBQ_PLUGIN(kEntries)
//
// Version rule. The section has the ABI minor, a fingerprint (compiler, string ABI, debug mode, language, sanitizer)
// and the layout of the types that both sides access (abi_layout.h). Comments, names of parameters, inline functions
// and constants of the headers are not in the section: a plugin stays valid when such text changes.
//
//  - A change that breaks an old plugin raises the major and changes the symbol's name: another size, field, type or
//    order in a closed type; another order, signature or meaning of existing virtuals; another value of an enumerator.
//  - An addition raises the minor: a new virtual at the end of an interface; a new field at the end of an open type; a
//    new enumerator at the end of an open enumeration; a new type; a new field at the end of Descriptor.
//  - The host accepts plugins of its own minor and of every older minor, and refuses a plugin with a newer minor.
//
// No code calls a new virtual on a plugin with an older minor, because the interface prevents the call: the virtual is
// private, and a public function in the same class checks the minor first.
//
//     /// Since minor 3.
//     std::string summary() const { return abiMinor() >= 3 ? doSummary() : std::string(); }
//    private:
//     virtual std::string doSummary() const { return {}; }  // last of the class
//
// Interfaces that the host implements (JobContext, Clock, Log, PluginConfig) need no such function: a plugin with a
// call of a later virtual has a later minor, and an older host refuses the plugin.
//
// The rule holds from the first release on. Until then no plugin outside of this repository exists: the version stays
// 6.0, and a change replaces the file of sdk/abi.
//
// sdk/abi/v<major>.<minor>.txt is the ABI of each minor as text. sdk/abi/check.py compares the headers with these files
// and says which of the two numbers a change has to raise.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "jobq/abi_entry.h"
#include "jobq/abi_layout.h"
#include "jobq/abi_version.h"
#include "jobq/config.h"
#include "jobq/error.h"
#include "jobq/plugin.h"

#define JOBQ_TEXT_OF(x) #x
#define JOBQ_TEXT(x) JOBQ_TEXT_OF(x)

#if defined(__clang__)
#define JOBQ_COMPILER "clang" JOBQ_TEXT(__clang_major__)
#else
#define JOBQ_COMPILER "gcc" JOBQ_TEXT(__GNUC__)
#endif
#if defined(_GLIBCXX_DEBUG)
#define JOBQ_DEBUG_MODE "on"
#else
#define JOBQ_DEBUG_MODE "off"
#endif
#if defined(__SANITIZE_ADDRESS__)
#define JOBQ_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define JOBQ_SANITIZER "thread"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JOBQ_SANITIZER "address"
#elif __has_feature(thread_sanitizer)
#define JOBQ_SANITIZER "thread"
#endif
#endif
#if !defined(JOBQ_SANITIZER)
#define JOBQ_SANITIZER "none"
#endif

namespace jobq::abi {

/// Name of the exported function with the descriptor, start of that name in any major, and name of the manifest's
/// section.
inline constexpr const char* kSymbol = "jobq_plugin_v6";
inline constexpr const char* kSymbolPrefix = "jobq_plugin_v";
inline constexpr const char* kSection = "jobq_abi";
static_assert(kMajor == 6, "the symbol's name says the major, here and in JOBQ_PLUGIN");

/// The fields that must be equal on both sides, one `field=value` on each line.
inline constexpr std::string_view kFingerprint = "compiler=" JOBQ_COMPILER                          //
                                                 "\nstring_abi=" JOBQ_TEXT(_GLIBCXX_USE_CXX11_ABI)  //
    "\ndebug_mode=" JOBQ_DEBUG_MODE                                                                 //
    "\nlanguage=" JOBQ_TEXT(__cplusplus)                                                            //
    "\nsanitizer=" JOBQ_SANITIZER                                                                   //
    "\n";

namespace detail {

template <class Implementation>
constexpr auto probeOf() -> std::vector<CheckResult> (*)(const PluginEnv&) {
  if constexpr (requires(const PluginEnv& env) { Implementation::probe(env); }) {
    return [](const PluginEnv& env) { return Implementation::probe(env); };
  } else {
    return nullptr;
  }
}

}  // namespace detail

/// Returns the entry of the class Implementation, which implements Interface and is constructible from PluginEnv.
/// Implementation may have a nested class `Options` with a constructor that reads the settings from a PluginConfig, and
/// a static function `probe` for Entry::probe. `name` and `version` are literals of the library.
template <class Interface, class Implementation>
constexpr Entry entry(const char* name, const char* version) {
  return Entry{Interface::kKind,
               name,
               version,
               [](const PluginConfig& config) {
                 if constexpr (requires { typename Implementation::Options; }) {
                   (void)typename Implementation::Options(config);
                 } else {
                   (void)config;
                 }
               },
               [](const PluginEnv& env) -> Plugin* { return static_cast<Interface*>(new Implementation(env)); },
               detail::probeOf<Implementation>()};
}

/// Returns the text of the section: a title, the minor, the fingerprint, the layouts of the common types and of the
/// offered kinds, lines `entry=<kind> <name> <version>`, and a NUL.
template <const auto& kEntries>
consteval auto manifest() {
  constexpr auto each = [](auto&& put) {
    put("jobq_abi\nminor=");
    detail::putNumber(put, kMinor);
    put("\n");
    put(kFingerprint);
    describeLayout(put);
    for (const PluginKind kind : kKinds) {
      const auto isOfKind = [kind](const Entry& entry) { return entry.kind == kind; };
      if (std::any_of(std::begin(kEntries), std::end(kEntries), isOfKind)) describeLayout(put, kind);
    }
    for (const Entry& e : kEntries) {
      for (std::string_view part :
           {std::string_view("entry="), nameOf(e.kind), std::string_view(" "), std::string_view(e.name),
            std::string_view(" "), std::string_view(e.version), std::string_view("\n")}) {
        put(part);
      }
    }
  };
  constexpr std::size_t length = [each] {
    std::size_t sum = 1;
    each([&sum](std::string_view part) { sum += part.size(); });
    return sum;
  }();
  std::array<char, length> text{};
  std::size_t at = 0;
  each([&](std::string_view part) {
    for (char c : part) text[at++] = c;
  });
  return text;
}

}  // namespace jobq::abi

/// Exports the entries of a library: used once for each library, at namespace scope, with a constexpr array of entries
/// at namespace scope.
#define JOBQ_PLUGIN(entries)                                                                              \
  namespace {                                                                                             \
  [[gnu::section("jobq_abi"), gnu::used]] constexpr auto jobqManifest = ::jobq::abi::manifest<entries>(); \
  constexpr ::jobq::abi::Descriptor jobqDescriptor{sizeof(::jobq::abi::Descriptor), ::jobq::abi::kMinor,  \
                                                   ::jobq::abi::kFingerprint.data(), entries,             \
                                                   sizeof(entries) / sizeof(entries[0])};                 \
  }                                                                                                       \
  extern "C" JOBQ_VISIBLE const ::jobq::abi::Descriptor* jobq_plugin_v6();                                \
  const ::jobq::abi::Descriptor* jobq_plugin_v6() { return &jobqDescriptor; }
