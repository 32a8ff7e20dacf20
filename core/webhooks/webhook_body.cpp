#include "core/webhooks/webhook_body.h"

#include "core/base/job_json.h"
#include "jobq/json.h"

namespace jobq {

std::string webhookBody(const Delivery& delivery) {
  std::string body = wholeJob(delivery.job);
  body.pop_back();
  body.reserve(body.size() + delivery.input.size() + 2 * delivery.url.size() + 32);
  body += ",\"input\":";
  body += delivery.input;
  body += ",\"webhook\":";
  json::appendQuoted(body, delivery.url);
  body += "}";
  return body;
}

}  // namespace jobq
