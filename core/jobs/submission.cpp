#include "core/jobs/submission.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/secret_box.h"
#include "core/base/words.h"
#include "core/config/policy_fields.h"
#include "core/jobs/webhook_url.h"
#include "jobq/json.h"
#include "jobq/nearest.h"

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

constexpr std::array<std::string_view, 5> kBodyKeys{"input", "policy", "webhook", "webhookV2", "s3Config"};
constexpr std::array<std::string_view, 4> kMisspelledKeys{"input", "webhook", "policy", "s3Config"};

// Returns the unknown keys of the body. A slip in a key that a caller must not lose unseen is refused.
Result<std::vector<std::string>> findIgnoredKeys(const json::Document& body, bool ignoresNearKeys) {
  std::vector<std::string> ignored;
  for (const json::Member& member : body.members) {
    std::string key = json::decode(member.key);
    if (member.value.kind == json::Kind::null || std::ranges::count(kBodyKeys, key) > 0) continue;
    const auto meant = std::ranges::find_if(kMisspelledKeys, [&key](std::string_view known) {
      return key.size() <= known.size() + 1 && editDistance(key, known) == 1;
    });
    if (meant != kMisspelledKeys.end() && !ignoresNearKeys) {
      return invalid("the body has no key " + json::quoted(key) + ": did you mean " + std::string(*meant) + "?");
    }
    ignored.push_back(std::move(key));
  }
  return ignored;
}

// A misspelled executionTimeout would silently run a job for ten minutes. Public clients send only the known fields.
Failure unknownPolicy(const std::string& key) {
  std::vector<std::string> known;
  std::string all;
  for (const FormField<JobPolicy>& field : policyFields()) {
    known.push_back(field.name);
    all += (known.size() == 1 ? "" : known.size() == policyFields().size() ? " and " : ", ") + field.name;
  }
  const std::string_view near = nearest(clipped(key), known);
  return invalid("policy has no field " + json::quoted(clipped(key)) + "; its fields are " + all +
                 (near.empty() ? "" : "; the nearest one is policy." + std::string(near)));
}

Result<void> checkKnown(const json::Document& policy) {
  for (const json::Member& member : policy.members) {
    const std::string key = json::decode(member.key);
    const bool isKnown = std::any_of(policyFields().begin(), policyFields().end(),
                                     [&key](const FormField<JobPolicy>& field) { return field.name == key; });
    if (!isKnown) return unknownPolicy(key);
  }
  return {};
}

Result<void> readField(JobPolicy& policy, const FormField<JobPolicy>& field, const json::Value& value,
                       OutOfRange otherwise) {
  json::Value read = value;
  std::string digits;
  if (const auto& range = field.facts.range) {
    const auto number = readInteger(value, *range, otherwise);
    if (number) digits = std::to_string(*number);
    if (number) read.raw = digits;
  }
  const auto done = field.read(policy, read);
  if (done) return done;
  return invalid("policy." + field.name + " " + done.failure().message());
}

// Parses an object of the body and refuses a key that occurs twice.
Result<json::Document> readObject(const json::Value& value, const char* what) {
  if (value.kind != json::Kind::object) return invalid(std::string(what) + " must be an object");
  auto object = parse(value.raw, what);
  if (!object) return object;
  if (const auto good = checkDuplicates(*object, what); !good) return good.failure();
  return object;
}

Result<JobPolicy> readPolicy(const json::Document& body, const Endpoint& endpoint, OutOfRange otherwise) {
  JobPolicy policy;
  policy.executionTimeout = endpoint.spec.executionTimeout;
  const auto value = present(body, "policy");
  if (!value) return policy;
  const auto fields = readObject(*value, "policy");
  if (!fields) return fields.failure();
  if (const auto good = checkKnown(*fields); !good) return good.failure();
  for (const FormField<JobPolicy>& field : policyFields()) {
    const auto member = present(*fields, field.name);
    if (!member) continue;
    if (const auto done = readField(policy, field, *member, otherwise); !done) return done.failure();
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

Result<ReadSubmission> readBody(std::string text, const Endpoint& endpoint, const SubmissionRules& rules) {
  const auto parsed = parse(text, "the body");
  if (!parsed) return parsed.failure();
  const json::Document& body = *parsed;
  if (body.root.kind != json::Kind::object) return invalid("the body must be a JSON object with the key input");
  if (const auto good = checkDuplicates(body, "the body"); !good) return good.failure();
  auto ignored = findIgnoredKeys(body, rules.ignoresNearKeys);
  if (!ignored) return ignored.failure();
  const auto input = present(body, "input");
  if (!input) return invalid("input is missing: send {\"input\": {...}}");
  if (input->kind != json::Kind::object) return invalid("input must be a JSON object");
  ReadSubmission read{{}, *std::move(ignored)};
  JobSpec& spec = read.job;
  auto done = assign(spec.policy, readPolicy(body, endpoint, rules.numbers));
  if (done) done = assign(spec.webhook, readWebhook(body, rules));
  if (done) done = assign(spec.s3Config, readS3Config(body));
  if (!done) return done.failure();
  spec.input = cutOut(text, input->raw);
  return read;
}

}  // namespace

Millis retentionFor(std::optional<Millis> syncWait, const Endpoint& endpoint) {
  if (!syncWait) return endpoint.spec.runRetention.value_or(endpoint.defaults.runRetention);
  if (*syncWait <= kWaitDefault) return endpoint.spec.runsyncRetention.value_or(endpoint.defaults.runsyncRetention);
  return std::max(std::min(*syncWait, kWaitMax), endpoint.spec.runsyncRetention.value_or(Millis(0)));
}

Millis retentionOfFailures(const Endpoint& endpoint) {
  return endpoint.spec.failedRetention.value_or(endpoint.defaults.failedRetention);
}

Result<ReadSubmission> readSubmission(std::string body, const Endpoint& endpoint, const std::string& apiKeyId,
                                      std::optional<Millis> syncWait, const SubmissionRules& rules) {
  auto submission = readBody(std::move(body), endpoint, rules);
  if (!submission) return submission;
  JobSpec& job = submission->job;
  job.id = newJobId(syncWait.has_value());
  job.endpoint = endpoint.spec.id;
  job.apiKeyId = apiKeyId;
  job.s3Config = rules.secrets.seal(job.s3Config);
  job.retention = retentionFor(syncWait, endpoint);
  const Millis ofFailures = retentionOfFailures(endpoint);
  if (ofFailures > Millis(0)) job.retentionFailed = ofFailures;
  job.maxAttempts = endpoint.spec.maxAttempts;
  return submission;
}

}  // namespace jobq
