// The headers by which a receiver recognises a webhook of this server (core/http/API.md, "Webhook signature"; Standard
// Webhooks, https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/time.h"

namespace jobq {

/// Returns webhook-id, webhook-timestamp (whole seconds of `now`) and webhook-signature (version 1: HMAC-SHA256 over
/// `id.timestamp.body`). `key` has the bytes of the secret. Throws Error if OpenSSL fails.
std::vector<std::pair<std::string, std::string>> signatureHeaders(std::string_view key, const std::string& id,
                                                                  Instant now, std::string_view body);

}  // namespace jobq
