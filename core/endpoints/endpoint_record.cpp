#include "core/endpoints/endpoint_record.h"

#include "core/base/secret_box.h"
#include "jobq/base64.h"
#include "jobq/error.h"

namespace jobq {

Record toRecord(const EndpointSpec& spec, const SecretBox& box) {
  EndpointSpec kept = spec;
  kept.sealed = toBase64(box.seal(spec.webhookSecret));
  kept.webhookSecret.clear();
  kept.env.clear();
  return {kEndpointKind, spec.id, "", writeForm(kept, endpointFields(), true), 0, {}};
}

EndpointSpec endpointSpecOf(const Record& record, const SecretBox& box) {
  const auto damaged = [&record](const std::string& reason) {
    return Error("the endpoint " + record.id + " in the storage is damaged: " + reason);
  };
  EndpointSpec spec;
  if (const auto done = readRecord(spec, record.body, endpointFields()); !done) {
    throw damaged(done.failure().message());
  }
  const auto sealed = fromBase64(spec.sealed);
  if (!sealed) throw damaged("webhookSecret is damaged");
  spec.webhookSecret = box.open(*sealed);
  spec.sealed.clear();
  return spec;
}

}  // namespace jobq
