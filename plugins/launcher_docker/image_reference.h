// The name of an image, as templates and Docker write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace jobq::docker {

/// Parts of a text such as `registry.example:5000/team/worker:1.2@sha256:...`.
struct ImageReference {
  std::string name;    ///< with the registry, if the text names a registry
  std::string tag;     ///< empty if the text has none
  std::string digest;  ///< with its algorithm; empty if the text has none
};

/// Returns the parts of an image's name, or no value if Docker would refuse the name. Pure.
std::optional<ImageReference> readImageReference(std::string_view text);

/// Returns the registry that the image's name begins with, or an empty text if the name has none. Pure.
std::string_view registryIn(std::string_view image);

/// Returns what a pull asks for besides the name: the digest, otherwise the tag, otherwise `latest`. Pure.
std::string versionOf(const ImageReference& image);

}  // namespace jobq::docker
