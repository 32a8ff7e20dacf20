#include "core/webhooks/webhook_secrets.h"

#include "core/base/ids.h"
#include "jobq/base64.h"
#include "jobq/error.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr const char* kId = "webhook";
constexpr std::size_t kSigningKeyBytes = 32;

std::string toBody(std::string_view sealed) {
  return json::object([sealed](json::ObjectWriter& out) { out.member("sealed", toBase64(sealed)); });
}

std::string openBody(const std::string& body, const SecretBox& box) {
  const auto document = json::read(body);
  const auto* object = std::get_if<json::Document>(&document);
  const auto value = object != nullptr ? object->find("sealed") : std::nullopt;
  const auto sealed = value ? fromBase64(json::toText(*value).value_or("")) : std::nullopt;
  if (!sealed) throw Error("the webhook secret in the storage is damaged: set webhook.secret");
  try {
    return box.open(*sealed);
  } catch (const Error&) {
    throw Error(
        "the webhook secret in the storage was sealed with another secret.key: restore the right file, or set "
        "webhook.secret");
  }
}

}  // namespace

std::string WebhookSecrets::keyOf(const EndpointId& endpoint) {
  std::string own = endpoints_.webhookKey(endpoint);
  return own.empty() ? serverKey() : own;
}

std::string WebhookSecrets::serverSecret() { return "whsec_" + toBase64(serverKey()); }

std::string WebhookSecrets::serverKey() {
  if (!configuredKey_.empty()) return configuredKey_;
  {
    Lock lock(mutex_);
    if (!kept_.empty()) return kept_;
  }
  std::string key = findOrMake();
  Lock lock(mutex_);
  return kept_ = std::move(key);
}

// If two nodes find no secret at the same time, both make one: the storage takes the first, and the second node reads
// the first.
std::string WebhookSecrets::findOrMake() {
  for (;;) {
    if (const auto record = records_.find(kWebhookSecretKind, kId)) return openBody(record->body, box_);
    std::string key = randomBytes(kSigningKeyBytes);
    const Record record{kWebhookSecretKind, kId, "", toBody(box_.seal(key)), 0, {}};
    if (std::holds_alternative<Stored>(records_.create(record))) return key;
  }
}

}  // namespace jobq
