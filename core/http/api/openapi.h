// The description of the API behind `GET /openapi.json`, kept in core/http/api/openapi.json.
#pragma once

#include <string>

namespace jobq {

/// Returns the text of openapi.json with `info.version` filled in. The text is part of the program: the running server
/// needs no file. Any thread.
const std::string& openapiText();

}  // namespace jobq
