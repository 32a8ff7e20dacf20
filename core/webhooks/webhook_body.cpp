#include "core/webhooks/webhook_body.h"

#include "core/model/job_json.h"
#include "jobq/json_writer.h"

namespace jobq {

std::string webhookBody(const Delivery& delivery) {
  std::string body;
  body.reserve(jobJsonSize(delivery.job) + delivery.input.size() + 2 * delivery.url.size());
  json::appendObject(body, [&delivery](json::ObjectWriter& out) {
    writeJob(out, delivery.job);
    out.raw("input", delivery.input);
    out.member("webhook", delivery.url);
  });
  return body;
}

}  // namespace jobq
