// A webhook call over HTTP: a POST that follows no redirect, by the client of all plugins (`http_client/transfer.h`).
#pragma once

#include <stop_token>
#include <string>

#include "jobq/webhook_transport.h"

namespace jobq::webhook_http {

/// Settings shared by all calls; constant.
struct Terms {
  bool allowPrivate = false;
  std::string authorities;  ///< PEM; trusted besides the system's authorities; may be empty
};

/// Makes the call and blocks until its end. Any number of threads at once. Throws std::bad_alloc only.
///
/// The head decides: a complete head with 2xx means delivered. A body that is cut off, malformed or left unread does
/// not change the result, and neither does a stop. The time of the call can change the result: an answer is a failure
/// if the answer has not ended within the timeout of the call and less than 64 KiB of the body arrived
/// (`core/decisions/webhooks.md`).
DeliveryResult deliver(const WebhookCall& call, const Terms& terms, const std::stop_token& stop);

}  // namespace jobq::webhook_http
