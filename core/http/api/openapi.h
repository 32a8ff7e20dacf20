// The description of the API: what `GET /openapi.json` answers, kept in core/http/api/openapi.json.
#pragma once

#include <string>

namespace jobq {

/// The text of openapi.json, `info.version` filled in. It is part of the program: no file is needed where it runs.
/// Any thread.
const std::string& openapiText();

}  // namespace jobq
