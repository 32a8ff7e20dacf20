// A clock of the database that is set, and a start under a clock far ahead.
#include <string>

#include "jobq/holder.h"
#include "mysql_fixture.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;
using testing::HasSubstr;

constexpr Millis kBetweenMeasurements{16'000};

class MysqlClock : public MysqlTest {
 protected:
  /// Sets the clock of the database, and lets a node find out.
  void setClock(Storage& node, Millis ahead) {
    server().run(database(),
                 {"REPLACE INTO counted (name, value) VALUES ('test_offset', " + std::to_string(ahead.count()) + ")"});
    clock_.advance(kBetweenMeasurements);
    node.check();
  }

  /// Returns how far the time of the storage is ahead of the host.
  Millis ahead(Storage& node) { return node.now() - clock_.now(); }

  static JobSpec brief(const JobId& id) {
    JobSpec job = spec(id);
    job.policy.ttl = Millis(120'000);
    return job;
  }
};

TEST_F(MysqlClock, AStepForwardEndsNoJob) {
  const auto node = open();
  const Holder holder = node->nodes().join("node");
  (void)node->jobs().insert(brief("waits"), policy_);
  setClock(*node, Millis(300'000));
  EXPECT_EQ(ahead(*node), Millis(0));
  EXPECT_EQ(node->leases().sweep(100).removed, 0U);
  EXPECT_TRUE(node->jobs().find({"ep", "waits"}));
  EXPECT_EQ(node->nodes().beat(holder, {}), BeatResult::extended);
  EXPECT_THAT(log_.text(), HasSubstr("storage.clock: the clock of the database server was set forward by 300 s"));
  clock_.advance(Millis(100'000));
  EXPECT_EQ(ahead(*node), Millis(10'000)) << "a tenth of the passing time";
}

TEST_F(MysqlClock, AStepBackIsFollowedSlowlyAndTimeGoesOn) {
  const auto node = open();
  setClock(*node, Millis(-300'000));
  const Instant before = node->now();
  clock_.advance(Millis(100'000));
  EXPECT_EQ(node->now() - before, Millis(90'000));
  EXPECT_THAT(log_.text(), HasSubstr("was set back by 300 s"));
}

TEST_F(MysqlClock, ALaterNodeHasTheTimeOfTheEarlierNodes) {
  const auto first = open();
  const Holder holder = first->nodes().join("first");
  (void)first->jobs().insert(brief("waits"), policy_);
  for (const Millis step : {Millis(300'000), Millis(-300'000)}) {
    setClock(*first, step);
    EXPECT_EQ(first->nodes().beat(holder, {}), BeatResult::extended);
    const auto second = open();
    EXPECT_LE(std::chrono::abs(second->now() - first->now()), Millis(10));
    (void)second->nodes().join("second");
    (void)second->leases().sweep(100);
    EXPECT_TRUE(second->jobs().find({"ep", "waits"}));
    EXPECT_EQ(first->nodes().beat(holder, {}), BeatResult::extended);
  }
}

TEST_F(MysqlClock, AStartUnderAClockFarAheadIsRefused) {
  auto node = open();
  (void)node->nodes().join("node");
  (void)node->jobs().insert(brief("waits"), policy_);
  node.reset();
  server().run(database(), {"REPLACE INTO counted (name, value) VALUES ('test_offset', 7200000)"});
  const std::string message = refusal(settingsFor(server(), database()));
  EXPECT_THAT(message, HasSubstr("7200 s ahead of the clock of this host"));
  EXPECT_THAT(message, HasSubstr("set the clock that is wrong"));
  server().run(database(), {"DELETE FROM counted WHERE name = 'test_offset'"});
  node = open();
  EXPECT_EQ(node->leases().sweep(100).removed, 0U);
  EXPECT_TRUE(node->jobs().find({"ep", "waits"}));
  node.reset();
  clock_.advance(Millis(200'000'000));
  EXPECT_EQ(refusal(settingsFor(server(), database())), "") << "the clocks agree: the nodes were off for two days";
}

}  // namespace
}  // namespace jobq::test
