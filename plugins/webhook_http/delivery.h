// A webhook call over HTTP: a POST that follows no redirect, by the client of all plugins
// (`http_client/transfer_loop.h`).
#pragma once

#include <stop_token>

#include "http_client/transfer_loop.h"
#include "jobq/webhook_transport.h"

namespace jobq::webhook_http {

/// Makes the call on the loop and blocks until its end. Any number of threads at once. Throws std::bad_alloc, and
/// std::system_error for a lack of this machine, only.
///
/// The head decides: a complete head with 2xx means delivered. A body that is cut off, malformed or left unread does
/// not change the result, and neither does a stop. The time of the call can change the result: an answer is a failure
/// if the answer has not ended within the timeout of the call and less than 64 KiB of the body arrived
/// (`core/decisions/webhooks.md`).
DeliveryResult deliver(http_client::TransferLoop& loop, const WebhookCall& call, const std::stop_token& stop);

}  // namespace jobq::webhook_http
