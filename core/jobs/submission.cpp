#include "core/jobs/submission.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/job_policy.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/config/units.h"
#include "core/jobs/webhook_url.h"
#include "jobq/json.h"

namespace jobq {
namespace {

// Refusals travel as an exception inside this file only, so that each reader returns just the value read.
[[noreturn]] void refuse(std::string message) { throw Refusal{std::move(message)}; }

// Each scanned member takes 40 bytes: a body of 20 MB with short keys would take 240 MB more, for each caller at once.
constexpr std::size_t kMostKeys = 1'000;

json::Document parse(std::string_view text, const char* what) {
  auto result = json::read(text, kMostKeys + 1);
  if (const auto* fault = std::get_if<json::Fault>(&result)) {
    refuse(std::string(what) + " is not valid JSON: " + fault->reason + " (at byte " + std::to_string(fault->offset) +
           ")");
  }
  auto& document = std::get<json::Document>(result);
  if (document.members.size() > kMostKeys) {
    refuse(std::string(what) + " has more than 1000 keys: put the handler's data into input");
  }
  return std::move(document);
}

std::optional<json::Value> present(const json::Document& object, std::string_view key) {
  auto value = object.find(key);
  if (value && value->kind == json::Kind::null) return std::nullopt;
  return value;
}

void refuseDuplicates(const json::Document& object, const char* what) {
  std::set<std::string> seen;
  for (const json::Member& member : object.members) {
    const auto [at, fresh] = seen.insert(json::decode(member.key));
    if (!fresh) refuse(std::string(what) + " has the key " + json::quoted(clipped(*at)) + " twice: send it once");
  }
}

// A misspelled executionTimeout would silently run a job for ten minutes. Public clients send only the known fields.
void refuseUnknown(const json::Document& policy) {
  static const std::vector<std::string> kKnown{"executionTimeout", "ttl", "lowPriority", "priority"};
  for (const json::Member& member : policy.members) {
    const std::string key = json::decode(member.key);
    if (std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end()) continue;
    refuse("policy has no field " + json::quoted(clipped(key)) + "; the nearest one is policy." +
           units::nearest(clipped(key), kKnown));
  }
}

std::optional<std::int64_t> readField(const json::Document& policy, const PolicyBounds& bounds, OutOfRange otherwise) {
  const std::string_view key = std::string_view(bounds.field).substr(std::string_view("policy.").size());
  const auto value = present(policy, key);
  if (!value) return std::nullopt;
  const auto number = readInteger(*value, bounds.range, otherwise);
  if (!number) refuse(rangeOf(bounds));
  return number;
}

JobPolicy readPolicy(const json::Document& body, const Endpoint& endpoint, OutOfRange otherwise) {
  JobPolicy policy;
  policy.executionTimeout = endpoint.spec.executionTimeout;
  const auto value = present(body, "policy");
  if (!value) return policy;
  if (value->kind != json::Kind::object) refuse("policy must be an object");
  const json::Document fields = parse(value->raw, "policy");
  refuseDuplicates(fields, "policy");
  refuseUnknown(fields);
  if (const auto ms = readField(fields, kExecutionTimeoutBounds, otherwise)) policy.executionTimeout = Millis(*ms);
  if (const auto ms = readField(fields, kTtlBounds, otherwise)) policy.ttl = Millis(*ms);
  if (const auto n = readField(fields, kPriorityBounds, otherwise)) policy.priority = static_cast<std::int32_t>(*n);
  if (const auto low = present(fields, "lowPriority")) {
    const auto flag = json::toBoolean(*low);
    if (!flag) refuse("policy.lowPriority must be true or false");
    policy.lowPriority = *flag;
  }
  return policy;
}

// `webhookV2` counts if `webhook` is absent (core/decisions/webhooks.md). The rules for both fields are equal.
std::string readWebhook(const json::Document& body, const SubmissionRules& rules) {
  for (const char* field : {"webhook", "webhookV2"}) {
    const auto value = present(body, field);
    if (!value) continue;
    const auto url = json::toText(*value);
    if (!url) refuse(std::string(field) + " must be a string that holds a URL, such as https://example.com/done");
    const WebhookRules judged{rules.allowPrivateAddresses, rules.webhookSchemes};
    if (const auto fault = webhookFault(*url, judged, field)) refuse(*fault);
    return *url;
  }
  return {};
}

std::string readS3Config(const json::Document& body) {
  const auto value = present(body, "s3Config");
  if (!value) return {};
  if (value->kind != json::Kind::object) refuse("s3Config must be an object");
  const json::Document fields = parse(value->raw, "s3Config");
  refuseDuplicates(fields, "s3Config");
  for (const char* key : {"accessId", "accessSecret", "bucketName", "endpointUrl"}) {
    const auto field = present(fields, key);
    if (field && field->kind != json::Kind::string) refuse(std::string("s3Config.") + key + " must be a string");
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

JobSpec readBody(std::string text, const Endpoint& endpoint, const SubmissionRules& rules) {
  const json::Document body = parse(text, "the body");
  if (body.root.kind != json::Kind::object) refuse("the body must be a JSON object with the key input");
  refuseDuplicates(body, "the body");
  const auto input = present(body, "input");
  if (!input) refuse("input is missing: send {\"input\": {...}}");
  if (input->kind != json::Kind::object) refuse("input must be a JSON object");
  JobSpec spec;
  spec.policy = readPolicy(body, endpoint, rules.numbers);
  spec.webhook = readWebhook(body, rules);
  spec.s3Config = readS3Config(body);
  spec.input = cutOut(text, input->raw);
  return spec;
}

}  // namespace

Millis retentionFor(std::optional<Millis> syncWait, const Endpoint& endpoint) {
  if (!syncWait) return endpoint.spec.runRetention.value_or(Millis(1'800'000));
  if (*syncWait <= kWaitDefault) return endpoint.spec.runsyncRetention.value_or(Millis(60'000));
  return std::max(std::min(*syncWait, kWaitMax), endpoint.spec.runsyncRetention.value_or(Millis(0)));
}

std::variant<JobSpec, Refusal> readSubmission(std::string body, const Endpoint& endpoint, const std::string& apiKeyId,
                                              std::optional<Millis> syncWait, const SubmissionRules& rules) {
  try {
    JobSpec spec = readBody(std::move(body), endpoint, rules);
    spec.id = newJobId(syncWait.has_value());
    spec.endpoint = endpoint.spec.id;
    spec.apiKeyId = apiKeyId;
    spec.s3Config = rules.secrets.seal(spec.s3Config);
    spec.retention = retentionFor(syncWait, endpoint);
    spec.maxAttempts = endpoint.spec.maxAttempts;
    return spec;
  } catch (const Refusal& refusal) {
    return refusal;
  }
}

}  // namespace jobq
