// A webhook call over HTTP: a POST that follows no redirect, by the client of all plugins
// (`http_client/transfer_loop.h`).
#pragma once

#include <stop_token>

#include "http_client/transfer_loop.h"
#include "jobq/webhook_transport.h"

namespace jobq::webhook_http {

/// Begins the call on the loop. `call` and `receiver` stay valid until the receiver is told of the result, perhaps
/// before begin() returns. Any number of threads at once. Throws std::bad_alloc only; then the call has not begun.
///
/// The head decides: a complete head with 2xx means delivered. A body that is cut off, malformed or left unread does
/// not change the result, and neither does a stop. The time of the call can change the result: an answer is a failure
/// if the answer has not ended within the timeout of the call and less than 64 KiB of the body arrived
/// (`core/decisions/webhooks.md`).
void begin(http_client::TransferLoop& loop, const WebhookCall& call, std::stop_token stop, DeliveryReceiver& receiver);

}  // namespace jobq::webhook_http
