// The meaning of an image's name (core/decisions/endpoints.md).
#pragma once

#include <optional>
#include <string>

namespace jobq {

/// An image, parsed.
struct Image {
  enum class Kind {
    plugin,  ///< an installed C++ handler
    lua,     ///< a script of the server
    remote,  ///< Planned: workers that pull jobs over HTTP; until then such jobs wait
  } kind;
  std::string name;  ///< name of the handler or script; the whole image for remote
};

/// Returns the fault of the name, as the end of a sentence beginning with the name, or nullopt if the name is
/// well-formed.
std::optional<std::string> imageFault(const std::string& image);

/// Takes a name without fault.
Image parseImage(const std::string& image);

}  // namespace jobq
