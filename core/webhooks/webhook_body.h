// The body of a webhook: the job as `/status` showed the job at its end, and the submitted input.
#pragma once

#include <string>

#include "jobq/outbox_store.h"

namespace jobq {

/// Returns the `/status` object of the snapshot plus `input` and `webhook` (core/http/API.md, "Webhook request"). Input
/// and output keep the bytes of the caller and of the handler; a delivery holds no s3Config.
std::string webhookBody(const Delivery& delivery);

}  // namespace jobq
