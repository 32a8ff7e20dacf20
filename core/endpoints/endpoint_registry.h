// Which endpoints exist. Today those of the configuration file, fixed while the server runs.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"

namespace jobq {

/// Constant after construction; any thread.
class EndpointRegistry {
 public:
  explicit EndpointRegistry(std::vector<EndpointPtr> endpoints);

  /// Null when there is none.
  EndpointPtr find(std::string_view id) const;
  std::vector<EndpointPtr> all() const;
  /// Those whose jobs run inside this server.
  std::vector<EndpointId> served() const;

 private:
  std::map<EndpointId, EndpointPtr, std::less<>> endpoints_;
};

/// What an image's name means (decisions.md, "Images").
struct Image {
  enum class Kind { plugin, lua, remote } kind;
  std::string name;  ///< of the handler or script; the whole image for remote
};

/// Throws ConfigError when a plugin or script name is malformed.
Image parseImage(const std::string& image);

}  // namespace jobq
