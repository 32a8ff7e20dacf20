// The handshake between the server and a plugin library.
//
// A library proves that it fits before any of its code runs: the exported symbol's name carries the ABI major, and a
// section `jobq_abi` holds the manifest below as plain text, which the host reads from the file. Only then is the
// library loaded and its descriptor asked. Every mismatch names the field, both values and the remedy.
//
// A plugin ends with
//
//     constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, EchoFactory>("echo", "1.0.0")};
//     JOBQ_PLUGIN(kEntries)
//
// Version rule: a change that an old plugin cannot survive raises the major (and the symbol's name); a new virtual goes
// last in its interface and raises the minor, and the host calls it only on plugins whose minor has it. A plugin whose
// minor is newer than the host's is refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "jobq/config.h"
#include "jobq/error.h"
#include "jobq/plugin.h"

#if !defined(JOBQ_SDK_HASH)
#error "JOBQ_SDK_HASH is not defined: link the CMake target jobq::sdk or use jobq_add_plugin()"
#endif
#if !defined(JOBQ_ABI_MINOR)
#define JOBQ_ABI_MINOR 0
#endif

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

inline constexpr std::uint32_t kMajor = 1;
inline constexpr std::uint32_t kMinor = JOBQ_ABI_MINOR;
inline constexpr const char* kSymbol = "jobq_plugin_v1";
inline constexpr const char* kSymbolPrefix = "jobq_plugin_v";
inline constexpr const char* kSection = "jobq_abi";

/// What must be equal on both sides, a `field=value` a line.
inline constexpr std::string_view kFingerprint =
    "compiler=" JOBQ_COMPILER
    "\nstring_abi=" JOBQ_TEXT(_GLIBCXX_USE_CXX11_ABI) "\ndebug_mode=" JOBQ_DEBUG_MODE
                                                      "\nlanguage=" JOBQ_TEXT(__cplusplus) "\nsanitizer=" JOBQ_SANITIZER
                                                                                           "\nsdk=" JOBQ_SDK_HASH "\n";
inline constexpr std::string_view kManifestHead = "jobq_abi\nminor=" JOBQ_TEXT(JOBQ_ABI_MINOR) "\n";

/// One thing a library offers. Strings are literals of the library.
struct Entry {
  PluginKind kind;
  const char* name;                      ///< what the configuration calls it: [a-z0-9_-]{1,64}
  const char* version;                   ///< the plugin's own
  void (*declare)(const PluginConfig&);  ///< asks for every key it has, and makes nothing
  Plugin* (*create)(const PluginEnv&);   ///< the caller owns the result, which is an Interface of `kind`
};

/// What `jobq_plugin_v1()` returns: constant, owned by the library. New fields go last.
struct Descriptor {
  std::uint32_t size;  ///< sizeof(Descriptor) as the plugin knew it
  std::uint32_t minor;
  const char* fingerprint;
  const Entry* entries;
  std::uint32_t entryCount;
};

/// Makes the entry of a class that implements Interface, is constructible from PluginEnv, and may have a nested
/// `Options` that reads its keys from a PluginConfig in its constructor.
template <class Interface, class Implementation>
constexpr Entry entry(const char* name, const char* version) {
  return Entry{Interface::kKind, name, version,
               [](const PluginConfig& config) {
                 if constexpr (requires { typename Implementation::Options; }) {
                   (void)typename Implementation::Options(config);
                 } else {
                   (void)config;
                 }
               },
               [](const PluginEnv& env) -> Plugin* { return static_cast<Interface*>(new Implementation(env)); }};
}

/// The text of the section: head, fingerprint, `entry=<kind> <name> <version>` lines, NUL.
template <const auto& kEntries>
consteval auto manifest() {
  constexpr auto each = [](auto&& put) {
    put(kManifestHead);
    put(kFingerprint);
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

/// Once per library, at namespace scope, with a constexpr array of entries at namespace scope.
#define JOBQ_PLUGIN(entries)                                                                              \
  namespace {                                                                                             \
  [[gnu::section("jobq_abi"), gnu::used]] constexpr auto jobqManifest = ::jobq::abi::manifest<entries>(); \
  constexpr ::jobq::abi::Descriptor jobqDescriptor{sizeof(::jobq::abi::Descriptor), ::jobq::abi::kMinor,  \
                                                   ::jobq::abi::kFingerprint.data(), entries,             \
                                                   sizeof(entries) / sizeof(entries[0])};                 \
  }                                                                                                       \
  extern "C" JOBQ_VISIBLE const ::jobq::abi::Descriptor* jobq_plugin_v1();                                \
  const ::jobq::abi::Descriptor* jobq_plugin_v1() { return &jobqDescriptor; }
