// The meaning of an image's name (core/decisions/endpoints.md).
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"

namespace jobq {

/// An image, parsed.
struct Image {
  enum class Kind {
    plugin,  ///< an installed C++ handler
    lua,     ///< a script of the server
    remote,  ///< workers that take jobs over HTTP
  } kind;
  std::string name;  ///< name of the handler or script; the whole image for remote
};

/// Checks the name. The sentence of the failure begins with a verb, because the name of a field is put in front.
Result<void> checkImageName(const std::string& image);

/// Checks a new image of remote workers against the images that run inside the server, such as plugin/echo. Fails if
/// the name has a blank, is the bare name of a handler or a script, or is at most two edits away from an image of
/// `local`. The sentence begins with a verb. Succeeds for an image that runs inside the server.
Result<void> checkRemoteImage(const std::string& image, const std::vector<std::string>& local);

/// Takes a well-formed name.
Image parseImage(const std::string& image);

}  // namespace jobq
