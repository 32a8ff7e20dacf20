// Two processes on one database: every operation of the contract by both at once, and the end of a process by SIGKILL
// in the middle. Each process writes the answers to a log, and the test judges the logs and the database.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>
#include <istream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "mysql_fixture.h"
#include "storage_peer.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

/// The facts of all logs of a round.
struct Facts {
  explicit Facts(const std::vector<std::filesystem::path>& logs) {
    for (const std::filesystem::path& log : logs) {
      std::ifstream in(log);
      for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string fact;
        words >> fact;
        std::string rest;
        std::getline(words >> std::ws, rest);
        by[fact].push_back(rest);
      }
    }
  }
  /// Expects no fact of the kind twice.
  void expectOnce(const std::string& fact) const {
    std::multiset<std::string> all(by.at(fact).begin(), by.at(fact).end());
    for (const std::string& one : all) EXPECT_EQ(all.count(one), 1U) << fact << " " << one;
  }

  std::map<std::string, std::vector<std::string>> by;
};

class MysqlProcesses : public MysqlTest {
 protected:
  void TearDown() override {
    while (!children_.empty()) {
      ::kill(children_.back(), SIGKILL);
      (void)endOf(children_.back());
    }
  }

  /// Starts a process with the work of `plan`. The calling process has no other thread.
  pid_t start(const PeerPlan& plan) {
    logs_.push_back(plan.log);
    const Settings settings = settingsFor(server(), database());
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(2);
      int code = 0;
      try {
        Peer(plan, settings).work();
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", plan.life.c_str(), error.what());
        code = 1;
      }
      ::_exit(code);
    }
    children_.push_back(child);
    return child;
  }

  /// Waits for the end of the process and returns its status.
  int endOf(pid_t child) {
    int status = 0;
    waitFor(
        "the end of a process", [&] { return ::waitpid(child, &status, WNOHANG) == child; }, kWorkDeadline);
    children_.erase(std::find(children_.begin(), children_.end(), child));
    return status;
  }

  std::size_t linesOf(const std::filesystem::path& log) {
    std::ifstream in(log);
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
  }

  /// Returns the number of rows.
  int rows(const std::string& from) {
    return std::stoi(server().ask(database(), "SELECT COUNT(*) FROM " + from).at(0));
  }

  void expectNothingHalfWritten() {
    for (const char* const wrong : {
             "job LEFT JOIN ready_job USING (num) WHERE (state = 0) <> (ready_job.num IS NOT NULL)",
             "job LEFT JOIN running_job USING (num) WHERE (state = 1) <> (running_job.num IS NOT NULL)",
             "ready_job LEFT JOIN job USING (num) WHERE job.num IS NULL",
             "running_job LEFT JOIN job USING (num) WHERE job.num IS NULL",
             "job LEFT JOIN job_input USING (num) WHERE job_input.num IS NULL",
             "job_input LEFT JOIN job USING (num) WHERE job.num IS NULL",
             "job_output LEFT JOIN job USING (num) WHERE job.num IS NULL OR job.state IN (0, 1)",
             "job_progress LEFT JOIN job USING (num) WHERE job.num IS NULL OR job.state <> 1",
             "job_chunk LEFT JOIN job USING (num) WHERE job.num IS NULL OR seq >= chunks",
             "job_log LEFT JOIN job USING (num) WHERE job.num IS NULL OR seq > log_lines",
             "job WHERE chunks <> (SELECT COUNT(*) FROM job_chunk WHERE job_chunk.num = job.num)",
             "idempotency LEFT JOIN job ON job.id = idempotency.job WHERE job.num IS NULL",
             "delivery LEFT JOIN delivery_body USING (num) WHERE delivery_body.num IS NULL",
             "delivery_body LEFT JOIN delivery USING (num) WHERE delivery.num IS NULL",
             "job WHERE owes = 1 AND state > 1 AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.job = job.id)",
         }) {
      EXPECT_EQ(rows(wrong), 0) << wrong;
    }
    constexpr const char* kStates[] = {"in_queue",  "in_progress",  "is_completed",
                                       "is_failed", "is_cancelled", "is_timed_out"};
    for (int state = 0; state < 6; ++state) {
      for (const char* const endpoint : {"ep", "other"}) {
        const std::string where = "endpoint = '" + std::string(endpoint) + "'";
        const auto counted = server().ask(database(), "SELECT COALESCE(SUM(" + std::string(kStates[state]) +
                                                          "), 0) FROM endpoint_count WHERE " + where);
        EXPECT_EQ(counted.at(0), std::to_string(rows("job WHERE " + where + " AND state = " + std::to_string(state))))
            << endpoint << " " << kStates[state];
      }
    }
  }

  void expectJobsRight(Storage& storage, const Facts& facts) {
    for (const std::string& id : facts.by.at("insert")) {
      const auto job = storage.jobs().find({"ep", id});
      ASSERT_TRUE(job) << id << " was acknowledged and is lost";
      EXPECT_GT(job->state, JobState::inProgress) << id << " has not ended";
      if (job->state != JobState::completed) continue;
      EXPECT_EQ(job->output, "\"" + id + " " + std::to_string(job->attempt) + "\"")
          << "the output is from the stored attempt";
    }
    for (const char* const fact : {"insert", "claim", "finish", "consume", "delivered", "deliver"}) {
      facts.expectOnce(fact);
    }
    std::map<std::string, std::set<std::string>> jobsOfKeys;
    for (const std::string& text : facts.by.at("key")) {
      jobsOfKeys[text.substr(0, text.find(' '))].insert(text.substr(text.find(' ') + 1));
    }
    EXPECT_EQ(jobsOfKeys.size(), static_cast<std::size_t>(kSharedKeys));
    for (const auto& [key, jobs] : jobsOfKeys) EXPECT_EQ(jobs.size(), 1U) << key << " stands for several jobs";
    EXPECT_EQ(rows("idempotency"), kSharedKeys);
  }

  /// Expects the numbers of the records to fit the answers. The killed process may have stored one change more than its
  /// log has.
  void expectRecordsRight(Storage& storage, const Facts& facts) {
    EXPECT_EQ(std::count(facts.by.at("admin").begin(), facts.by.at("admin").end(), "stored"), 1);
    EXPECT_EQ(storage.records().list("key").size(), 1U);
    facts.expectOnce("version");
    const auto shared = storage.records().find("count", "shared");
    ASSERT_TRUE(shared);
    const int counted = static_cast<int>(facts.by.at("count").size());
    EXPECT_GE(std::stoi(shared->body), counted);
    EXPECT_LE(std::stoi(shared->body), counted + 1);
  }

  std::vector<std::filesystem::path> logs_;
  std::vector<pid_t> children_;
};

// In even rounds the killed process is started again, as by a supervisor: its node takes a new life. In odd rounds
// the other node waits for the end of the dead life.
TEST_F(MysqlProcesses, AProcessKilledInTheMiddleLeavesNoHalfWrittenStep) {
  constexpr int kRounds = 20;
  int lost = 0;
  for (int round = 0; round < kRounds; ++round) {
    folder_.clear();
    logs_.clear();
    (void)open();  // creates the schema, and closes the storage before a process is started
    const bool comesBack = round % 2 == 0;
    const auto plan = [&](const std::string& node, const std::string& life, unsigned seed) {
      return PeerPlan{node, life, seed, folder_ / (life + ".log"), folder_ / "dead"};
    };
    const unsigned seed = 1 + 10 * static_cast<unsigned>(round);
    const pid_t victim = start(plan("node-a", "a", seed));
    const pid_t other = start(plan("node-b", "b", seed + 1));
    const std::size_t lines = 10 + 6 * static_cast<std::size_t>(round);
    waitFor(
        "the work of the process that is killed", [&] { return linesOf(logs_[0]) >= lines; }, kWorkDeadline);
    ::kill(victim, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(endOf(victim))) << "the process ended without a signal";
    std::ofstream(folder_ / "dead.new") << (comesBack ? 5 : 60);
    std::filesystem::rename(folder_ / "dead.new", folder_ / "dead");
    if (comesBack) {
      EXPECT_EQ(endOf(start(plan("node-a", "c", seed + 2))), 0);
    }
    EXPECT_EQ(endOf(other), 0);
    const Facts facts(logs_);
    const auto storage = open();
    expectJobsRight(*storage, facts);
    expectRecordsRight(*storage, facts);
    expectNothingHalfWritten();
    lost += rows("job WHERE losses > 0");
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(lost, 0) << "no process was killed during a job";
  std::printf("%d rounds, %d jobs lost their worker\n", kRounds, lost);
}

}  // namespace
}  // namespace jobq::test
