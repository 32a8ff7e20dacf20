// The tables of fields as callers read them in core/http/API.md.
#pragma once

#include <string>

namespace jobq {

/// Returns the fields of policies, keys, templates, endpoints and rate limits, and the operations with rate limits, in
/// Markdown: each time a comment with a name, and a table. Pure; any thread.
std::string fieldsPage();

}  // namespace jobq
