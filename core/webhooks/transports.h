// Finds the transport of a webhook by the scheme of the URL.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "jobq/webhook_transport.h"

namespace jobq {

/// Owned transports by the names of their plugin entries.
using NamedTransports = std::map<std::string, std::unique_ptr<WebhookTransport>>;

/// Constant after construction; any thread may call. The transports outlive the object.
class Transports {
 public:
  /// Throws ConfigError if two transports serve one scheme.
  explicit Transports(const NamedTransports& named);

  /// Returns null if no transport serves the scheme of the URL.
  WebhookTransport* find(std::string_view url) const;

  /// Returns all served schemes in lower case.
  std::set<std::string> schemes() const;

 private:
  std::map<std::string, WebhookTransport*, std::less<>> byScheme_;
};

}  // namespace jobq
