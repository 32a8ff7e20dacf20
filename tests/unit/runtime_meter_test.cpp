// Tests of the measured run time of each template's workers (core/endpoints/runtime_meter.h).
#include "core/endpoints/runtime_meter.h"

#include <gtest/gtest.h>

#include "unit_storage.h"

namespace jobq {
namespace {

class RuntimeMeterTest : public testing::Test {
 protected:
  /// Lets `workers` workers run for `length`.
  void run(RuntimeMeter& meter, std::size_t workers, Millis length, const std::string& id = "t") {
    storage_.clock.advance(length);
    meter.tick({{id, workers}});
  }

  test::UnitStorage storage_;
  RuntimeMeter meter_{storage_->records(), storage_.clock};
};

TEST_F(RuntimeMeterTest, AnUnknownTemplateHasNotRun) { EXPECT_EQ(meter_.minutes("t"), 0); }

TEST_F(RuntimeMeterTest, EachWorkerCountsAndMinutesAreWhole) {
  meter_.tick({{"t", 3}});
  run(meter_, 3, Millis(19'999));
  EXPECT_EQ(meter_.minutes("t"), 0);
  run(meter_, 3, Millis(1));
  EXPECT_EQ(meter_.minutes("t"), 1);
  run(meter_, 1, Millis(59'999));
  EXPECT_EQ(meter_.minutes("t"), 1);
  run(meter_, 1, Millis(1));
  EXPECT_EQ(meter_.minutes("t"), 2);
}

TEST_F(RuntimeMeterTest, TimeBeforeTheFirstTickDoesNotCount) {
  run(meter_, 100, Millis(3'600'000));
  EXPECT_EQ(meter_.minutes("t"), 0);
}

TEST_F(RuntimeMeterTest, TimeWithoutWorkersDoesNotCount) {
  meter_.tick({{"t", 1}});
  storage_.clock.advance(Millis(3'600'000));
  meter_.tick({});
  run(meter_, 1, Millis(60'000));
  EXPECT_EQ(meter_.minutes("t"), 1);
}

TEST_F(RuntimeMeterTest, NodesAndRestartsAddUp) {
  RuntimeMeter other(storage_->records(), storage_.clock);
  meter_.tick({{"t", 1}});
  other.tick({{"t", 1}});
  storage_.clock.advance(Millis(120'000));
  meter_.tick({{"t", 1}});
  other.tick({{"t", 1}});
  EXPECT_EQ(other.minutes("t"), 4);
  RuntimeMeter restarted(storage_->records(), storage_.clock);
  restarted.tick({});
  EXPECT_EQ(restarted.minutes("t"), 4);
}

TEST_F(RuntimeMeterTest, LessThanAMinuteIsNotWrittenYet) {
  meter_.tick({{"t", 1}});
  run(meter_, 1, Millis(59'999));
  EXPECT_TRUE(storage_.real->records().list("runtime").empty());
  run(meter_, 1, Millis(1));
  EXPECT_EQ(storage_.real->records().list("runtime").size(), 1U);
}

TEST_F(RuntimeMeterTest, AFailingStorageLosesNothing) {
  meter_.tick({{"t", 1}});
  storage_.faults.failNext("records.create");
  EXPECT_THROW(run(meter_, 1, Millis(60'000)), StorageError);
  EXPECT_EQ(meter_.minutes("t"), 1);
  run(meter_, 1, Millis(60'000));
  EXPECT_EQ(meter_.minutes("t"), 2);
  RuntimeMeter other(storage_->records(), storage_.clock);
  other.tick({});
  EXPECT_EQ(other.minutes("t"), 2);
}

TEST_F(RuntimeMeterTest, AFailedFirstTickIsMadeUpForByTheNext) {
  meter_.tick({{"t", 1}});
  run(meter_, 1, Millis(60'000));
  RuntimeMeter other(storage_->records(), storage_.clock);
  storage_.faults.failNext("records.list");
  EXPECT_THROW(other.tick({}), StorageError);
  other.tick({});
  EXPECT_EQ(other.minutes("t"), 1);
}

}  // namespace
}  // namespace jobq
