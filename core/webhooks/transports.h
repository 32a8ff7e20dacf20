// Which transport carries a webhook: the one that serves its URL's scheme.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "jobq/webhook_transport.h"

namespace jobq {

/// Transports by the names of their plugin entries; owned.
using NamedTransports = std::map<std::string, std::unique_ptr<WebhookTransport>>;

/// Constant after construction; any thread. The transports outlive it.
class Transports {
 public:
  /// Throws ConfigError when two of them serve one scheme.
  explicit Transports(const NamedTransports& named);

  /// Null when no transport serves the URL's scheme.
  WebhookTransport* find(std::string_view url) const;

  /// All that are served, lower case.
  std::set<std::string> schemes() const;

 private:
  std::map<std::string, WebhookTransport*, std::less<>> byScheme_;
};

}  // namespace jobq
