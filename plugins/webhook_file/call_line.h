// A webhook call as a line of JSON, and the file named by its URL.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jobq/webhook_transport.h"

namespace jobq::webhook_file {

/// Returns NAME of `file:///NAME` as a view into `url`, or no value for any other URL. NAME matches
/// [A-Za-z0-9_-][A-Za-z0-9._-]{0,127}.
std::optional<std::string_view> fileNameOf(std::string_view url);

/// Returns {"url":"...","headers":{"name":"value"},"body":...} and a line feed. Headers are in the order of the call.
/// The body is last and unchanged, so a reader finds the signed bytes between `},"body":` and the last brace of the
/// line. Line breaks, possible in JSON only between tokens, become blanks.
std::string lineOf(const WebhookCall& call);

}  // namespace jobq::webhook_file
