// Tests of how often the server asks the storage for its readiness to write (core/http/api/readiness.h).
#include "core/http/api/readiness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "testkit/forwarding_storage.h"
#include "testkit/wait_for.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {
namespace {

class ReadinessTest : public testing::Test {
 protected:
  /// Asks as the only caller, so the caller makes the check.
  bool isReady() {
    Readiness::Question question{caller_.call()};
    const auto result = readiness_.check(question);
    EXPECT_TRUE(result) << "no other caller checks";
    return result && *result;
  }

  test::HeldCaller caller_;
  test::UnitStorage storage_;
  Readiness readiness_{*storage_, storage_.clock};
};

TEST_F(ReadinessTest, AGoodAnswerIsGoodForASecond) {
  EXPECT_TRUE(isReady());
  storage_.faults.failOperation("check");
  storage_.clock.advance(Millis(999));
  EXPECT_TRUE(isReady()) << "the storage is not asked";
  storage_.clock.advance(Millis(1));
  EXPECT_FALSE(isReady());
}

TEST_F(ReadinessTest, ABadAnswerIsAskedForAgain) {
  storage_.faults.failOperation("check");
  EXPECT_FALSE(isReady());
  EXPECT_FALSE(isReady());
  storage_.faults.heal();
  EXPECT_TRUE(isReady()) << "a recovery is seen at once";
}

/// Checks when the test lets it.
class SlowStorage final : public testkit::ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;

  void check() override {
    ++checks;
    testkit::waitFor("the end of the check", [this] { return isOpen.load(); });
    if (fails) throw StorageError("the disk is gone");
  }

  std::atomic<int> checks = 0;
  std::atomic<bool> isOpen = false;
  bool fails = false;
};

TEST_F(ReadinessTest, DuringACheckOtherCallersWaitWithoutAThread) {
  SlowStorage slow(*storage_);
  slow.fails = true;
  Readiness readiness(slow, storage_.clock);
  auto checking = std::async(std::launch::async, [&] {
    Readiness::Question question{caller_.call()};
    return readiness.check(question);
  });
  testkit::waitFor("the check", [&] { return slow.checks == 1; });
  test::HeldCaller other;
  Readiness::Question question{other.call()};
  EXPECT_FALSE(readiness.check(question));
  EXPECT_FALSE(readiness.check(question)) << "a resumption without an event";
  slow.isOpen = true;
  EXPECT_FALSE(*testkit::resultOf("the check", checking));
  EXPECT_TRUE(other.isResumed());
  const auto result = readiness.check(question);
  ASSERT_TRUE(result) << "the result of the check of the first caller";
  EXPECT_FALSE(*result);
  EXPECT_EQ(slow.checks, 1);
}

}  // namespace
}  // namespace jobq
