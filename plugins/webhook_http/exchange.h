// One webhook call over HTTP: a POST that is bounded in time and memory, ended by a stop, and connected to permitted
// addresses only. No proxy, no redirects, no cookies, no stored credentials, no connection that is shared.
#pragma once

#include <stop_token>
#include <string>

#include "jobq/webhook_transport.h"

namespace jobq::webhook_http {

/// What every call has in common. Constant.
struct Terms {
  bool allowPrivate = false;
  std::string authorities;  ///< PEM; trusted besides the system's; may be empty
};

/// Any thread, many at once; blocks. Throws std::bad_alloc only.
///
/// The head decides: once a complete one says 2xx, the call is delivered. A body that is cut off, malformed or left
/// unread does not take it back, and neither does a stop. Only time does: an answer that has not ended within the
/// call's timeout, and of which less than 64 KiB came, is a failure (core/decisions/webhooks.md: any 2xx within 10 s in
/// all).
DeliveryResult exchange(const WebhookCall& call, const Terms& terms, std::stop_token stop);

}  // namespace jobq::webhook_http
