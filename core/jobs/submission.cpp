#include "core/jobs/submission.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/config/units.h"
#include "core/jobs/webhook_url.h"
#include "core/model/job_policy.h"
#include "jobq/json.h"

namespace jobq {
namespace {

// Each scanned member takes 40 bytes: a body of 20 MB with short keys would take 240 MB more, for each caller at once.
constexpr std::size_t kMostKeys = 1'000;

Result<json::Document> parse(std::string_view text, const char* what) {
  auto result = json::read(text, kMostKeys + 1);
  if (const auto* fault = std::get_if<json::Fault>(&result)) {
    return invalid(std::string(what) + " is not valid JSON: " + fault->reason + " (at byte " +
                   std::to_string(fault->offset) + ")");
  }
  auto& document = std::get<json::Document>(result);
  if (document.members.size() > kMostKeys) {
    return invalid(std::string(what) + " has more than 1000 keys: put the handler's data into input");
  }
  return std::move(document);
}

std::optional<json::Value> present(const json::Document& object, std::string_view key) {
  auto value = object.find(key);
  if (value && value->kind == json::Kind::null) return std::nullopt;
  return value;
}

Result<void> checkDuplicates(const json::Document& object, const char* what) {
  std::set<std::string> seen;
  for (const json::Member& member : object.members) {
    const auto [at, fresh] = seen.insert(json::decode(member.key));
    if (!fresh)
      return invalid(std::string(what) + " has the key " + json::quoted(clipped(*at)) + " twice: send it once");
  }
  return {};
}

// A misspelled executionTimeout would silently run a job for ten minutes. Public clients send only the known fields.
Result<void> checkKnown(const json::Document& policy) {
  static const std::vector<std::string> kKnown{"executionTimeout", "ttl", "lowPriority", "priority"};
  for (const json::Member& member : policy.members) {
    const std::string key = json::decode(member.key);
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    return invalid("policy has no field " + json::quoted(clipped(key)) +
                   "; its fields are executionTimeout, ttl, lowPriority and priority; the nearest one is policy." +
                   units::nearest(clipped(key), kKnown));
  }
  return {};
}

// Calls `apply` with the number if the field is present.
template <class Apply>
Result<void> readField(const json::Document& policy, const PolicyBounds& bounds, OutOfRange otherwise, Apply&& apply) {
  const std::string_view key = std::string_view(bounds.field).substr(std::string_view("policy.").size());
  const auto value = present(policy, key);
  if (!value) return {};
  const auto number = readInteger(*value, bounds.range, otherwise);
  if (!number) return invalid(rangeOf(bounds));
  apply(*number);
  return {};
}

// Parses an object of the body and refuses a key that occurs twice.
Result<json::Document> readObject(const json::Value& value, const char* what) {
  if (value.kind != json::Kind::object) return invalid(std::string(what) + " must be an object");
  auto object = parse(value.raw, what);
  if (!object) return object;
  if (const auto good = checkDuplicates(*object, what); !good) return good.failure();
  return object;
}

Result<void> readNumbers(JobPolicy& policy, const json::Document& fields, OutOfRange otherwise) {
  auto done = readField(fields, kExecutionTimeoutBounds, otherwise,
                        [&policy](std::int64_t ms) { policy.executionTimeout = Millis(ms); });
  if (done) done = readField(fields, kTtlBounds, otherwise, [&policy](std::int64_t ms) { policy.ttl = Millis(ms); });
  if (!done) return done;
  return readField(fields, kPriorityBounds, otherwise,
                   [&policy](std::int64_t number) { policy.priority = static_cast<std::int32_t>(number); });
}

Result<JobPolicy> readPolicy(const json::Document& body, const Endpoint& endpoint, OutOfRange otherwise) {
  JobPolicy policy;
  policy.executionTimeout = endpoint.spec.executionTimeout;
  const auto value = present(body, "policy");
  if (!value) return policy;
  const auto fields = readObject(*value, "policy");
  if (!fields) return fields.failure();
  if (const auto good = checkKnown(*fields); !good) return good.failure();
  if (const auto done = readNumbers(policy, *fields, otherwise); !done) return done.failure();
  if (const auto low = present(*fields, "lowPriority")) {
    const auto flag = json::toBoolean(*low);
    if (!flag) return invalid("policy.lowPriority must be true or false");
    policy.lowPriority = *flag;
  }
  return policy;
}

// `webhookV2` counts if `webhook` is absent (core/decisions/webhooks.md). The rules for both fields are equal.
Result<std::string> readWebhook(const json::Document& body, const SubmissionRules& rules) {
  for (const char* field : {"webhook", "webhookV2"}) {
    const auto value = present(body, field);
    if (!value) continue;
    const auto url = json::toText(*value);
    if (!url)
      return invalid(std::string(field) + " must be a string that holds a URL, such as https://example.com/done");
    const WebhookRules webhookRules{rules.allowPrivateAddresses, rules.webhookSchemes};
    if (const auto good = checkWebhook(*url, webhookRules, field); !good) return good.failure();
    return *url;
  }
  return std::string();
}

Result<std::string> readS3Config(const json::Document& body) {
  const auto value = present(body, "s3Config");
  if (!value) return std::string();
  const auto fields = readObject(*value, "s3Config");
  if (!fields) return fields.failure();
  for (const char* key : {"accessId", "accessSecret", "bucketName", "endpointUrl"}) {
    const auto field = present(*fields, key);
    if (field && field->kind != json::Kind::string)
      return invalid(std::string("s3Config.") + key + " must be a string");
  }
  return std::string(value->raw);
}

/// Returns `part` of `text`. The memory of `text` is reused if `part` is about as large, because a body may have 20 MB.
std::string cutOut(std::string& text, std::string_view part) {
  if (text.capacity() > 2 * part.size()) return std::string(part);
  const auto start = static_cast<std::size_t>(part.data() - text.data());
  text.resize(start + part.size());
  text.erase(0, start);
  return std::move(text);
}

Result<JobSpec> readBody(std::string text, const Endpoint& endpoint, const SubmissionRules& rules) {
  const auto parsed = parse(text, "the body");
  if (!parsed) return parsed.failure();
  const json::Document& body = *parsed;
  if (body.root.kind != json::Kind::object) return invalid("the body must be a JSON object with the key input");
  if (const auto good = checkDuplicates(body, "the body"); !good) return good.failure();
  const auto input = present(body, "input");
  if (!input) return invalid("input is missing: send {\"input\": {...}}");
  if (input->kind != json::Kind::object) return invalid("input must be a JSON object");
  JobSpec spec;
  auto done = assign(spec.policy, readPolicy(body, endpoint, rules.numbers));
  if (done) done = assign(spec.webhook, readWebhook(body, rules));
  if (done) done = assign(spec.s3Config, readS3Config(body));
  if (!done) return done.failure();
  spec.input = cutOut(text, input->raw);
  return spec;
}

}  // namespace

Millis retentionFor(std::optional<Millis> syncWait, const Endpoint& endpoint) {
  if (!syncWait) return endpoint.spec.runRetention.value_or(kRunRetention);
  if (*syncWait <= kWaitDefault) return endpoint.spec.runsyncRetention.value_or(kRunsyncRetention);
  return std::max(std::min(*syncWait, kWaitMax), endpoint.spec.runsyncRetention.value_or(Millis(0)));
}

Result<JobSpec> readSubmission(std::string body, const Endpoint& endpoint, const std::string& apiKeyId,
                               std::optional<Millis> syncWait, const SubmissionRules& rules) {
  auto spec = readBody(std::move(body), endpoint, rules);
  if (!spec) return spec;
  JobSpec& job = *spec;
  job.id = newJobId(syncWait.has_value());
  job.endpoint = endpoint.spec.id;
  job.apiKeyId = apiKeyId;
  job.s3Config = rules.secrets.seal(job.s3Config);
  job.retention = retentionFor(syncWait, endpoint);
  job.maxAttempts = endpoint.spec.maxAttempts;
  return spec;
}

}  // namespace jobq
