#include "core/auth/process_keys.h"

#include <memory>
#include <utility>

#include "core/base/ids.h"
#include "core/base/sha256.h"

namespace jobq {

std::string ProcessKeys::keyFor(const EndpointId& endpoint) {
  Lock lock(mutex_);
  const auto found = entries_.find(endpoint);
  if (found != entries_.end()) return found->second.secret;
  const std::string secret = "jobq_" + randomHex(32);
  auto key = std::make_shared<ApiKey>();
  key->id = "launched-" + randomHex(6);
  key->name = "launched workers of " + endpoint;
  key->digest = sha256(secret);
  key->scopes = {"worker"};
  key->endpoints = {endpoint};
  entries_[endpoint] = {secret, std::move(key)};
  publish();
  return secret;
}

void ProcessKeys::forgetKey(const EndpointId& endpoint) {
  Lock lock(mutex_);
  if (entries_.erase(endpoint) > 0) publish();
}

std::shared_ptr<const ApiKey> ProcessKeys::find(std::string_view digest) const {
  const auto keys = keys_.get();
  if (!keys) return nullptr;
  const auto found = keys->find(digest);
  return found == keys->end() ? nullptr : found->second;
}

void ProcessKeys::publish() {
  auto keys = std::make_shared<ByDigest>();
  for (const auto& [endpoint, entry] : entries_) keys->emplace(entry.key->digest, entry.key);
  keys_.set(keys);
}

}  // namespace jobq
