// Tests of the keys of launched workers (core/auth/process_keys.h).
#include "core/auth/process_keys.h"

#include <gtest/gtest.h>

#include <string>

#include "core/auth/api_keys.h"
#include "core/base/clock.h"
#include "core/base/sha256.h"
#include "unit_storage.h"

namespace jobq {
namespace {

TEST(ProcessKeys, AnEndpointKeepsTheKeyUntilForgotten) {
  ProcessKeys keys;
  const std::string secret = keys.keyFor("ep");
  EXPECT_EQ(keys.keyFor("ep"), secret);
  EXPECT_NE(keys.keyFor("other"), secret);
  ASSERT_NE(keys.find(sha256(secret)), nullptr);
  EXPECT_EQ(keys.find(secret), nullptr);
  keys.forgetKey("ep");
  EXPECT_EQ(keys.find(sha256(secret)), nullptr);
  EXPECT_NE(keys.keyFor("ep"), secret);
}

TEST(ProcessKeys, AKeyOpensTheWorkerCallsOfASingleEndpoint) {
  test::UnitStorage storage;
  const ClockAsWallClock wall(storage.clock);
  ProcessKeys launched;
  ApiKeys keys(storage->records(), storage.clock, wall, storage.log, &launched);
  const std::string authorization = "Bearer " + launched.keyFor("ep");
  EXPECT_NE(keys.authenticate(authorization, Scope::worker, "ep"), nullptr);
  EXPECT_EQ(keys.authenticate(authorization, Scope::worker, "other"), nullptr);
  EXPECT_EQ(keys.authenticate(authorization, Scope::client, "ep"), nullptr);
  EXPECT_EQ(keys.authenticate(authorization, Scope::admin, ""), nullptr);
  EXPECT_TRUE(keys.list().empty()) << "the key of a process is not stored";
  keys.storeUses();
  launched.forgetKey("ep");
  EXPECT_EQ(keys.authenticate(authorization, Scope::worker, "ep"), nullptr);
}

}  // namespace
}  // namespace jobq
