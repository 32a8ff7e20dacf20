// Tests of the orders to drain (core/workers/node/node_drains.h).
#include "core/workers/node/node_drains.h"

#include <gtest/gtest.h>

#include "core/jobs/queue_signal.h"
#include "unit_storage.h"

namespace jobq {
namespace {

class NodeDrainsTest : public testing::Test {
 protected:
  test::UnitStorage storage_;
  NodeLife& node_ = *storage_.life;
  QueueSignal signal_{{"ep"}};
  NodeDrains drains_{{storage_->records(), node_, signal_, storage_.log}};
};

TEST_F(NodeDrainsTest, ANodeDrainsFromTheNextLookOn) {
  drains_.refresh();
  EXPECT_TRUE(node_.mayClaim());
  drains_.begin("node");
  drains_.begin("node");
  drains_.refresh();
  EXPECT_TRUE(node_.isDrained());
  EXPECT_FALSE(node_.mayClaim());
  drains_.end("node");
  drains_.end("node");
  drains_.refresh();
  EXPECT_FALSE(node_.isDrained());
  EXPECT_TRUE(node_.mayClaim());
}

TEST_F(NodeDrainsTest, TheDispatcherIsWokenWhenTheDrainEnds) {
  drains_.begin("node");
  drains_.refresh();
  signal_.clear("ep");
  (void)signal_.consume();
  drains_.end("node");
  drains_.refresh();
  EXPECT_TRUE(signal_.consume());
  EXPECT_TRUE(signal_.isSet("ep")) << "jobs may wait";
}

TEST_F(NodeDrainsTest, ANodeKnowsTheDrainOfADifferentNode) {
  drains_.begin("other");
  drains_.refresh();
  EXPECT_TRUE(node_.isDrained("other"));
  EXPECT_TRUE(node_.mayClaim());
}

TEST_F(NodeDrainsTest, AFailingLookKeepsTheLastOrders) {
  drains_.begin("node");
  drains_.refresh();
  drains_.end("node");
  storage_.faults.failOperation("records.changedSince");
  EXPECT_THROW(drains_.refresh(), StorageError);
  EXPECT_TRUE(node_.isDrained());
  storage_.faults.heal();
  drains_.refresh();
  EXPECT_FALSE(node_.isDrained());
}

}  // namespace
}  // namespace jobq
