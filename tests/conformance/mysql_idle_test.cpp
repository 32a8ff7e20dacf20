// The statements of a node without work.
#include <string>
#include <vector>

#include "jobq/outbox_store.h"
#include "mysql_fixture.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

class MysqlIdle : public MysqlTest {
 protected:
  /// Returns the number of statements executed by the server, without the statements of the function.
  std::int64_t statements() { return counted("'Com_stmt_execute', 'Com_begin', 'Com_commit'"); }
  std::int64_t commits() { return counted("'Com_commit'"); }

 private:
  std::int64_t counted(const std::string& names) {
    return std::stoll(
        server()
            .ask("", "SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name IN (" +
                         names + ")")
            .at(0));
  }
};

TEST_F(MysqlIdle, EachPeriodicCallIsOneStatementAtMost) {
  const auto node = open();
  const Holder holder = node->nodes().join("node");
  const std::vector<EndpointWorkers> workers{{"ep", {.idle = 1, .ready = 1}}};
  const auto beat = [&] { EXPECT_EQ(node->nodes().beat(holder, workers), BeatResult::extended); };
  (void)node->jobs().insert(spec("waits"), policy_);
  const std::uint64_t version = node->records().changedSince("key", 0).version;
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"beat", beat},
      {"sweep", [&] { EXPECT_FALSE(node->leases().sweep(100).more); }},
      {"queuedEndpoints", [&] { EXPECT_EQ(node->leases().queuedEndpoints().size(), 1U); }},
      {"changedSince", [&] { (void)node->records().changedSince("key", version); }},
      {"dueHosts", [&] { EXPECT_TRUE(node->outbox().dueHosts("", 10).hosts.empty()); }},
      {"abandonOwed",
       [&] {
         EXPECT_TRUE(node->outbox().abandonOwed({Millis(1), 1}, 10).endpoints.empty());
       }},
  };
  beat();                                         // stores the report
  for (const auto& [name, call] : calls) call();  // a connection is opened at its first use
  for (const auto& [name, call] : calls) {
    const std::int64_t before = statements();
    call();
    EXPECT_LE(statements() - before, 1) << name;
  }
}

TEST_F(MysqlIdle, TheOutcomesOfABatchShareTransactions) {
  const auto node = open();
  const Holder holder = node->nodes().join("node");
  constexpr std::size_t kJobs = 100;
  for (std::size_t i = 0; i < kJobs; ++i) (void)node->jobs().insert(spec("job" + std::to_string(i)), policy_);
  std::vector<WorkerId> workers;
  for (std::size_t i = 0; i < kJobs; ++i) workers.push_back("w" + std::to_string(i));
  std::vector<EndedAttempt> ends;
  for (const ClaimedJob& job : node->leases().claim(std::vector{ClaimWant{"ep", workers}}, holder, 1).jobs) {
    ends.push_back({job.lease, Completed{"1"}});
  }
  ASSERT_EQ(ends.size(), kJobs);
  const std::int64_t commitsBefore = commits();
  const auto results = node->leases().finish(ends, Durability::synced, std::nullopt).reports;
  EXPECT_EQ(std::ranges::count(results, ReportResult::accepted), static_cast<std::ptrdiff_t>(kJobs));
  EXPECT_EQ(commits() - commitsBefore, 2) << "64 outcomes a transaction";
}

TEST_F(MysqlIdle, AnAnswerForSeveralCallsHasTheChangesOfTheNode) {
  const auto node = open();
  const Holder holder = node->nodes().join("node");
  EXPECT_TRUE(node->leases().queuedEndpoints().empty());
  (void)node->jobs().insert(spec("job"), policy_);
  EXPECT_EQ(node->leases().queuedEndpoints().size(), 1U);
  EXPECT_EQ(node->leases().sweep(100).removed, 0U);
  clock_.advance(spec("job").policy.ttl);
  EXPECT_EQ(node->leases().sweep(100).removed, 1U);
  EXPECT_TRUE(node->leases().queuedEndpoints().empty());
}

/// A beat with an unchanged report must not revive a life ended by another node.
TEST_F(MysqlIdle, ABeatOfAnEndedLifeIsRefused) {
  const auto node = open();
  const Holder first = node->nodes().join("node");
  EXPECT_EQ(node->nodes().beat(first, {}), BeatResult::extended);
  EXPECT_EQ(node->nodes().beat(first, {}), BeatResult::extended);
  server().run(database(), {"UPDATE node SET alive = 0"});
  EXPECT_EQ(node->nodes().beat(first, {}), BeatResult::ended);
  const Holder second = node->nodes().join("node");
  EXPECT_EQ(node->nodes().beat(second, {}), BeatResult::extended);
  EXPECT_EQ(node->nodes().beat(first, {}), BeatResult::replaced);
}

/// The report must be stored again after a beat of another epoch.
TEST_F(MysqlIdle, AChangedReportIsStored) {
  const auto node = open();
  const Holder holder = node->nodes().join("node");
  const auto idle = [&] { return node->nodes().count("ep", "other").idle; };
  for (const std::uint32_t count : {1U, 2U, 2U, 0U, 1U}) {
    const std::vector<EndpointWorkers> workers{{"ep", {.idle = count}}};
    EXPECT_EQ(node->nodes().beat(holder, workers), BeatResult::extended);
    EXPECT_EQ(idle(), count);
  }
  EXPECT_EQ(node->nodes().beat(holder, {}), BeatResult::extended);
  EXPECT_EQ(idle(), 0U);
}

}  // namespace
}  // namespace jobq::test
