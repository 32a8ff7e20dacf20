// The tables of fields as callers read them in core/http/API.md.
#pragma once

#include <string>

namespace jobq {

/// Returns the fields of policies, keys, templates, endpoints and rate limits in Markdown: for each a comment with its
/// name, and a table. Pure; any thread.
std::string fieldsPage();

}  // namespace jobq
