// The secret that signs the webhooks of an endpoint: the secret of the endpoint, else the secret of the server. The
// secret of the server is `webhook.secret`, or a secret made by the first node without one and stored sealed: all nodes
// sign with the same secret, and receivers keep the secret over a restart.
#pragma once

#include <string>
#include <utility>

#include "core/base/secret_box.h"
#include "core/model/webhook_backoff.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// Kind of the record with the secret of the server, sealed.
inline constexpr const char* kWebhookSecretKind = "secret";

/// The decisions of endpoints about their webhooks.
class WebhookPolicy {
 public:
  virtual ~WebhookPolicy() = default;

  /// Returns the attempts of the endpoint's webhooks; those of the server if the endpoint is unknown. Any thread may
  /// call.
  virtual WebhookBackoff webhookRetries(const EndpointId& endpoint) const = 0;

  /// Returns the bytes that sign the webhooks of the endpoint, or an empty string if the endpoint has no secret of its
  /// own or is unknown. Any thread may call.
  virtual std::string webhookKey(const EndpointId& endpoint) const = 0;
};

/// Any thread may call. The referenced objects outlive the object.
class WebhookSecrets {
 public:
  /// `serverKey` is the configured secret of the server as bytes; empty: not configured.
  WebhookSecrets(std::string serverKey, const WebhookPolicy& endpoints, RecordStore& records, const SecretBox& box)
      : configuredKey_(std::move(serverKey)), endpoints_(endpoints), records_(records), box_(box) {}

  /// Returns the bytes that sign the webhooks of an endpoint. Throws StorageError if the storage is needed and fails,
  /// and Error if the stored secret was sealed with another secret.key.
  std::string keyOf(const EndpointId& endpoint);

  /// Returns the attempts of the endpoint's webhooks.
  WebhookBackoff retriesOf(const EndpointId& endpoint) const { return endpoints_.webhookRetries(endpoint); }

  /// Returns the secret of the server in the form for receivers: "whsec_" and base64. Throws like keyOf().
  std::string serverSecret();

 private:
  std::string serverKey();
  std::string findOrMake();

  const std::string configuredKey_;
  const WebhookPolicy& endpoints_;
  RecordStore& records_;
  const SecretBox& box_;
  Mutex mutex_;
  std::string kept_ JOBQ_GUARDED_BY(mutex_);  // the stored secret once known; never changes
};

}  // namespace jobq
