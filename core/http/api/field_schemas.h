// Schemas of the OpenAPI description that are made from tables of fields (core/config/form.h).
#pragma once

#include <string>
#include <string_view>

namespace jobq {

/// Returns the JSON text of a schema of core/http/api/openapi.json, `schema`, together with the fields of its table:
/// the fields are in `required` and in `properties` before the ones of `schema`. Returns `schema` if no table has the
/// name. Pure; any thread.
std::string withFields(std::string_view name, std::string_view schema);

}  // namespace jobq
