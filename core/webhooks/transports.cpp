#include "core/webhooks/transports.h"

#include <algorithm>
#include <sstream>

namespace jobq {

Transports::Transports(const NamedTransports& named) {
  std::map<std::string, std::string, std::less<>> owners;
  for (const auto& [name, transport] : named) {
    std::istringstream schemes{std::string(transport->schemes())};
    for (std::string scheme; schemes >> scheme;) {
      const auto [owner, fresh] = owners.emplace(scheme, name);
      if (!fresh) {
        std::string message = "webhook.transports names ";
        message.append(owner->second).append(" and ").append(name).append(", which both serve ").append(scheme);
        throw ConfigError(message.append(" URLs: name only one"));
      }
      byScheme_[scheme] = transport.get();
    }
  }
}

WebhookTransport* Transports::find(std::string_view url) const {
  std::string scheme(url.substr(0, url.find(':')));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const auto found = byScheme_.find(scheme);
  return found == byScheme_.end() ? nullptr : found->second;
}

std::set<std::string> Transports::schemes() const {
  std::set<std::string> schemes;
  for (const auto& [scheme, transport] : byScheme_) schemes.insert(scheme);
  return schemes;
}

}  // namespace jobq
