#include "core/endpoints/endpoint_registry.h"

#include <algorithm>

namespace jobq {

EndpointRegistry::EndpointRegistry(std::vector<EndpointPtr> endpoints) {
  for (EndpointPtr& endpoint : endpoints) endpoints_.emplace(endpoint->id, std::move(endpoint));
}

EndpointPtr EndpointRegistry::find(std::string_view id) const {
  const auto found = endpoints_.find(id);
  return found == endpoints_.end() ? nullptr : found->second;
}

std::vector<EndpointPtr> EndpointRegistry::all() const {
  std::vector<EndpointPtr> endpoints;
  for (const auto& [id, endpoint] : endpoints_) endpoints.push_back(endpoint);
  return endpoints;
}

std::vector<EndpointId> EndpointRegistry::served() const {
  std::vector<EndpointId> ids;
  for (const auto& [id, endpoint] : endpoints_) {
    if (endpoint->handler != nullptr) ids.push_back(id);
  }
  return ids;
}

Image parseImage(const std::string& image) {
  const auto named = [&image](std::string_view prefix) {
    std::string name = image.substr(prefix.size());
    const bool shaped = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    });
    if (!shaped) throw ConfigError("image " + image + ": the name after / must match [A-Za-z0-9_-]{1,64}");
    return name;
  };
  if (image.starts_with("plugin/")) return {Image::Kind::plugin, named("plugin/")};
  if (image.starts_with("lua/")) return {Image::Kind::lua, named("lua/")};
  return {Image::Kind::remote, image};
}

}  // namespace jobq
