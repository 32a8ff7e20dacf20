// Which secret signs the webhooks of an endpoint: its own, else the server's. The server's is `webhook.secret`, or one
// that the first node that needed it has made: it is kept in the storage, sealed, so that all nodes sign with the same
// and receivers keep it over a restart.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "core/base/secret_box.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. `records` and `box` outlive it.
class WebhookSecrets {
 public:
  /// As bytes; empty: not configured. An endpoint that was deleted has none of its own any more.
  struct Configured {
    std::string server;
    std::function<std::string(const EndpointId&)> ofEndpoint;
  };
  WebhookSecrets(Configured configured, RecordStore& records, const SecretBox& box)
      : configured_(std::move(configured)), records_(records), box_(box) {}

  /// The bytes that sign the webhooks of an endpoint. Throws StorageError when the storage has to be asked and fails,
  /// Error when what it keeps was sealed with another secret.key.
  std::string keyOf(const EndpointId& endpoint);

  /// The server's secret as receivers are given it: "whsec_" and base64. Throws as keyOf() does.
  std::string serverSecret();

 private:
  std::string serverKey();
  std::string findOrMake();

  const Configured configured_;
  RecordStore& records_;
  const SecretBox& box_;
  Mutex mutex_;
  std::string kept_ JOBQ_GUARDED_BY(mutex_);  // once it is known; it never changes
};

}  // namespace jobq
