// API keys on a storage in memory, with a separate time of day.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/auth/key_record.h"
#include "core/auth/scope.h"
#include "core/base/clock.h"
#include "core/base/data_dir.h"
#include "jobq/time.h"
#include "testkit/temporary_folder.h"
#include "unit_storage.h"

namespace jobq::test {

class ApiKeysTest : public testing::Test {
 protected:
  std::unique_ptr<ApiKeys> node() {
    return std::make_unique<ApiKeys>(storage_->records(), storage_.clock, wall_, storage_.log);
  }

  static ApiKey keyFor(std::vector<std::string> scopes, std::vector<std::string> endpoints = {}) {
    ApiKey key;
    key.name = "a test's";
    key.scopes = std::move(scopes);
    key.endpoints = std::move(endpoints);
    return key;
  }
  std::string create(ApiKey key) { return keys_->create(key); }
  bool opens(const std::string& authorization, const RouteAccess& access = Scope::client,
             const std::string& endpoint = "ep") {
    return keys_->authenticate(authorization, access, endpoint) != nullptr;
  }

  std::string secretOfFile() const {
    const std::string text = readFile(file_).value();
    return text.substr(0, text.size() - 1);
  }

  // The time of day: equal to the clock, unless a test sets another time.
  struct Wall final : WallClock {
    explicit Wall(const Clock& clock) : clock_(clock) {}
    Instant now() const override { return clock_.now() + ahead; }
    Millis ahead{0};
    const Clock& clock_;
  };

  UnitStorage storage_;
  Wall wall_{storage_.clock};
  const testkit::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "admin.key";
  std::unique_ptr<ApiKeys> keys_ = node();
};

}  // namespace jobq::test
