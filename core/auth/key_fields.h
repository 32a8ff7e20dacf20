// The fields of an API key in requests and responses (core/http/API.md, "Keys over REST"). The record of a key is in
// core/auth/key_record.h.
#pragma once

#include "core/auth/key_record.h"
#include "core/config/form.h"

namespace jobq {

/// Returns the table of all fields, in the order of responses; constant.
const FormFields<ApiKey>& keyFields();

/// Returns the rows of the fields that the holder of a key sees; constant.
const FormFields<ApiKey>& ownKeyFields();

}  // namespace jobq
