// What the name of an image means (core/decisions/endpoints.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jobq {

struct Image {
  enum class Kind {
    plugin,  ///< an installed C++ handler
    lua,     ///< a script of the server's
    remote,  ///< workers that pull jobs over HTTP
  } kind;
  std::string name;  ///< of the handler or script; the whole image for remote
};

/// [A-Za-z0-9_-]{1,64}: the rule for handlers and scripts. It keeps a script's file inside its folder.
bool isScriptName(std::string_view name);

/// What is wrong with the name, as the end of a sentence that begins with it; nothing when it is well-formed.
std::optional<std::string> imageFault(const std::string& image);

/// Of a name without fault.
Image parseImage(const std::string& image);

}  // namespace jobq
