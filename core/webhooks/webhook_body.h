// What a webhook's receiver reads: the job as `/status` showed it when it ended, and what was submitted.
#pragma once

#include <string>

#include "jobq/outbox_store.h"

namespace jobq {

/// The `/status` object of the snapshot plus `input` and `webhook` (core/decisions/webhooks.md). The bytes of input and
/// output are the caller's and the handler's own; s3Config is not in a delivery.
std::string webhookBody(const Delivery& delivery);

}  // namespace jobq
