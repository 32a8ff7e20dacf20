// A webhook call as one line of JSON, and the file that its URL names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jobq/webhook_transport.h"

namespace jobq::webhook_file {

/// NAME of `file:///NAME`, which matches [A-Za-z0-9_-][A-Za-z0-9._-]{0,127}; nothing for any other URL. A view into it.
std::optional<std::string_view> fileNameOf(std::string_view url);

/// {"url":"...","headers":{"name":"value"},"body":...} and a line feed. Headers stand in the call's order. The body
/// stands last, and as it is, so a reader has its bytes, which are what was signed, between `},"body":` and the line's
/// last brace. Line breaks, which JSON has only between its tokens, become blanks.
std::string lineOf(const WebhookCall& call);

}  // namespace jobq::webhook_file
