// The description of the API behind `GET /openapi.json`: core/http/api/openapi.json, completed with the parts that
// follow from other parts.
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns the description. The text is part of the program and is completed once: the running server needs no file.
/// Any thread.
const std::string& openapiText();

/// Returns core/http/api/openapi.json with `info.version` filled in. The build makes the function
/// (core/http/api/embed_text.cmake). Any thread.
const std::string& openapiSource();

/// Returns `source` with the second mount: the calls of each path below `/v2` below `/sdk/v2` too, with the lenient
/// parameters and schemas. `source` is valid. Pure; any thread.
std::string completedOpenapi(std::string_view source);

}  // namespace jobq
