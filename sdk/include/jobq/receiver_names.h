// The names of webhook receivers. A storage keeps the name beside each delivery (outbox_store.h, Delivery::host).
// Storages have no parser of URLs: the server names the receivers for the storages.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Names the receivers of webhooks. The server owns the object, and the object outlives every plugin object. Any
/// thread.
class ReceiverNames {
 public:
  virtual ~ReceiverNames() = default;

  /// Returns the name of the receiver that the URL leads to, equal for all spellings of one receiver: host and port,
  /// such as "hooks.example.com:8443". A text that is no URL has a name too; only an empty text has an empty name. The
  /// function is pure and keeps no view: a storage may store the name or compute it again. Throws std::bad_alloc only.
  virtual std::string nameOf(std::string_view url) const = 0;
};

}  // namespace jobq
