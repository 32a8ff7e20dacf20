// Endpoints as records of the storage.
#pragma once

#include "core/config/endpoint_spec.h"
#include "jobq/record_store.h"

namespace jobq {

class SecretBox;

inline constexpr const char* kEndpointKind = "endpoint";

/// Kind of the record that marks an endpoint as paused; the record has the id of the endpoint. Endpoints of the file
/// can be paused too: a pause changes no property of an endpoint.
inline constexpr const char* kPauseKind = "pause";

/// Returns the record, with `webhookSecret` sealed.
Record toRecord(const EndpointSpec& spec, const SecretBox& box);

/// Throws Error if the record is damaged or was sealed with another secret.key.
EndpointSpec endpointSpecOf(const Record& record, const SecretBox& box);

}  // namespace jobq
