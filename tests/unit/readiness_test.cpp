// Tests of how often the server asks the storage for its readiness to write (core/http/api/readiness.h).
#include "core/http/api/readiness.h"

#include <gtest/gtest.h>

#include "unit_storage.h"

namespace jobq {
namespace {

class ReadinessTest : public testing::Test {
 protected:
  test::UnitStorage storage_;
  Readiness readiness_{*storage_, storage_.clock};
};

TEST_F(ReadinessTest, AGoodAnswerIsGoodForASecond) {
  EXPECT_NO_THROW(readiness_.check());
  storage_.faults.failOperation("check");
  storage_.clock.advance(Millis(999));
  EXPECT_NO_THROW(readiness_.check()) << "the storage is not asked";
  storage_.clock.advance(Millis(1));
  EXPECT_THROW(readiness_.check(), StorageError);
}

TEST_F(ReadinessTest, ABadAnswerIsAskedForAgain) {
  storage_.faults.failOperation("check");
  EXPECT_THROW(readiness_.check(), StorageError);
  EXPECT_THROW(readiness_.check(), StorageError);
  storage_.faults.heal();
  EXPECT_NO_THROW(readiness_.check()) << "a recovery is seen at once";
}

}  // namespace
}  // namespace jobq
