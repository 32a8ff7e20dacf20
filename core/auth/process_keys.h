// The keys of the workers that this process launches. They are never stored: they end with the process, and no other
// node knows them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/auth/key_record.h"
#include "core/base/shared_snapshot.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

/// Any thread.
class ProcessKeys {
 public:
  /// Returns the secret of a key with the scope `worker` for the endpoint. Makes the key at the first call. The secret
  /// has 256 random bits.
  std::string keyFor(const EndpointId& endpoint);

  /// Removes the key of the endpoint.
  void forgetKey(const EndpointId& endpoint);

  /// Returns the key with the SHA-256 `digest`; null if there is none.
  std::shared_ptr<const ApiKey> find(std::string_view digest) const;

 private:
  struct Entry {
    std::string secret;
    std::shared_ptr<const ApiKey> key;
  };
  using ByDigest = std::map<std::string, std::shared_ptr<const ApiKey>, std::less<>>;

  void publish() JOBQ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<EndpointId, Entry> entries_ JOBQ_GUARDED_BY(mutex_);
  SharedSnapshot<ByDigest> keys_;
};

}  // namespace jobq
