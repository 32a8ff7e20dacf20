// The meaning of an image's name (core/decisions/endpoints.md).
#pragma once

#include <string>

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

/// Takes a well-formed name.
Image parseImage(const std::string& image);

}  // namespace jobq
