// The pace of storage_mysql beside the pace of its database, on a server of its own. Every round measures each
// contestant once, so ratios within a run mean something on a noisy machine; the table holds medians.
//   TMPDIR=/folder/on/a/real/disk build/tests/mysql_pace [--rounds 5] [--jobs 6000]
//
// Contestants:
//  - bare: two threads write the rows of a job's life (queue, start, end) with the same tables and statements, 64 jobs
//  in
//    each transaction, without any decision: the limit of the database for these rows.
//  - N nodes: N storages on one database, 64 callers altogether. A caller inserts a job and waits until it is finished;
//  each
//    node claims for its idle workers with one thread, as the dispatcher does, and 32 workers finish.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jobq/mutex.h"
#include "mariadb_server.h"
#include "open_mysql.h"
#include "plugins/storage_mysql/connection/connection.h"
#include "testkit/run_together.h"
#include "testkit/wait_for.h"

namespace jobq::bench {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kCallers = 64;
constexpr int kWorkers = 32;  // of each node
constexpr int kBatch = 64;
constexpr char kBody[] = R"({"prompt":"a lighthouse in the rain","steps":30,"size":[512,512]})";

class SystemClock final : public Clock {
 public:
  Instant now() const override {
    return fromEpochMillis(
        std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch()).count());
  }
  /// No part of a storage waits for a moment.
  void waitUntil(Mutex&, Condition&, Instant) override { std::abort(); }
};

class ArrivalOrder final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

/// Jobs per second, and commits of the database for each job.
struct Rate {
  double jobs = 0;
  double commits = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A caller that waits for the end of its job.
class Caller {
 public:
  void await() {
    Lock lock(mutex_);
    for (testkit::WaitDeadline wait("the end of a job"); !std::exchange(hasEnded_, false);) wait.on(ended_, mutex_);
  }
  void end() {
    Lock lock(mutex_);
    hasEnded_ = true;
    ended_.notifyOne();
  }

 private:
  Mutex mutex_;
  Condition ended_;
  bool hasEnded_ JOBQ_GUARDED_BY(mutex_) = false;
};

class Bench {
 public:
  explicit Bench(int jobs) : jobs_(jobs) {}

  /// Runs `work` and returns its pace.
  Rate measure(const std::function<void()>& work) {
    const double commits = committed();
    const auto began = std::chrono::steady_clock::now();
    work();
    const double took = Seconds(std::chrono::steady_clock::now() - began).count();
    return {jobs_ / took, (committed() - commits) / jobs_};
  }

  Rate bare() {
    const std::string database = server().provideDatabase();
    (void)testkit::openMysql(clock_, log_, testkit::settingsFor(server(), database));  // makes the tables
    const testkit::MapConfig config(testkit::settingsFor(server(), database));
    const mysql::Connector connector{mysql::Options(config)};
    return measure([&] {
      constexpr int kThreads = 2;
      testkit::runTogether(kThreads, [&](int thread) {
        const auto connection = connector.open(mysql::Isolation::readCommitted);
        for (std::int64_t batch = thread; batch * kBatch < jobs_; batch += kThreads) writeLives(*connection, batch);
      });
    });
  }

  Rate inserts() {
    const auto node = open(server().provideDatabase());
    return measure([&] {
      testkit::runTogether(kCallers, [&](int caller) {
        for (int i = caller; i < jobs_; i += kCallers) insert(*node, i);
      });
    });
  }

  Rate lives(int nodes);

 private:
  /// The parts of a node: its storage, the idle workers and the claimed jobs.
  struct Node {
    std::unique_ptr<Storage> storage;
    Holder holder;
    Mutex mutex;
    Condition mayClaim;
    Condition mayWork;
    int idle JOBQ_GUARDED_BY(mutex) = kWorkers;
    bool mayHaveJobs JOBQ_GUARDED_BY(mutex) = false;
    bool isOver JOBQ_GUARDED_BY(mutex) = false;
    std::vector<ClaimedJob> claimed JOBQ_GUARDED_BY(mutex);
  };

  static testkit::MariadbServer& server() { return testkit::MariadbServer::shared(); }

  std::unique_ptr<Storage> open(const std::string& database) {
    return testkit::openMysql(clock_, log_, testkit::settingsFor(server(), database));
  }

  double committed() {
    return std::atof(server()
                         .ask("",
                              "SELECT variable_value FROM information_schema.global_status WHERE variable_name = "
                              "'Com_commit'")
                         .at(0)
                         .c_str());
  }

  void insert(Storage& storage, int number) {
    JobSpec job;
    job.id = "job-" + std::to_string(number);
    job.endpoint = "ep";
    job.input = kBody;
    (void)storage.jobs().insert(std::move(job), policy_);
  }

  static void writeLives(mysql::Connection& db, std::int64_t batch);
  void claimFor(Node& node);
  void work(Node& node);

  const int jobs_;
  SystemClock clock_;
  testkit::SilentLog log_;
  ArrivalOrder policy_;
  std::atomic<CallId> lastCall_ = 0;
  std::array<Caller, kCallers> callers_;
};

/// Writes the rows of the lives of kBatch jobs, in the three transactions of a life.
void Bench::writeLives(mysql::Connection& db, std::int64_t batch) {
  const std::int64_t first = 1 + batch * kBatch;
  db.execute("BEGIN");
  for (std::int64_t num = first; num < first + kBatch; ++num) {
    const std::string id = "job-" + std::to_string(num);
    db.later(
          "INSERT INTO job (num, id, endpoint, state, low, queue_rank, max_attempts, priority, execution_timeout, ttl, "
          "retention, submitted_at, queued_at, expires_at, owes) VALUES (?, ?, 'ep', 0, 0, 0, 3, 0, 600000, 86400000, "
          "1800000, ?, ?, ?, 0)")
        .add(num, id, num, num, num + 86'400'000'000'000);
    db.later("INSERT INTO job_input (num, webhook, api_key, s3, input) VALUES (?, '', '', '', ?)").add(num, kBody);
    db.later(
          "INSERT INTO ready_job (endpoint, low, queue_rank, arrival, num, expires_at, queued_at) "
          "VALUES ('ep', 0, 0, ?, ?, ?, ?)")
        .add(num, num, num + 86'400'000'000'000, num);
  }
  db.send();
  db.execute("COMMIT");
  db.execute("BEGIN");
  for (std::int64_t num = first; num < first + kBatch; ++num) {
    db.later("UPDATE job SET state = 1, attempt = attempt + 1, started_at = ?, worker = 'w', claim = 1 WHERE num = ?")
        .add(num, num);
    db.later("DELETE FROM ready_job WHERE endpoint = 'ep' AND low = 0 AND queue_rank = 0 AND arrival = ?").add(num);
    db.later("INSERT INTO running_job (num, epoch, deadline) VALUES (?, 1, ?)").add(num, num);
  }
  db.send();
  db.execute("COMMIT");
  db.execute("BEGIN");
  for (std::int64_t num = first; num < first + kBatch; ++num) {
    db.later("DELETE FROM running_job WHERE num = ?").add(num);
    db.later(
          "UPDATE job SET state = 2, finished_at = ?, expires_at = ?, losses = 0, retries = 0, has_progress = 0 WHERE "
          "num = ?")
        .add(num, num + 1'800'000, num);
    db.later("REPLACE INTO job_output (num, error, output) VALUES (?, '', ?)").add(num, kBody);
  }
  db.send();
  db.execute("COMMIT");
}

/// Claims for the idle workers until the end of the run, as the dispatcher does.
void Bench::claimFor(Node& node) {
  for (;;) {
    int idle = 0;
    {
      Lock lock(node.mutex);
      while (!node.isOver && (node.idle == 0 || !node.mayHaveJobs)) node.mayClaim.wait(node.mutex);
      if (node.isOver) return;
      idle = std::exchange(node.idle, 0);
      node.mayHaveJobs = false;
    }
    ClaimWant want{"ep", {}};
    for (int i = 0; i < idle; ++i) want.workers.push_back("w" + std::to_string(i));
    auto jobs = node.storage->leases().claim(std::vector{want}, node.holder, ++lastCall_).jobs;
    Lock lock(node.mutex);
    node.idle += idle - static_cast<int>(jobs.size());
    if (!jobs.empty()) node.mayHaveJobs = true;
    for (ClaimedJob& job : jobs) {
      node.claimed.push_back(std::move(job));
      node.mayWork.notifyOne();
    }
  }
}

void Bench::work(Node& node) {
  for (;;) {
    ClaimedJob job;
    {
      Lock lock(node.mutex);
      while (!node.isOver && node.claimed.empty()) node.mayWork.wait(node.mutex);
      if (node.isOver) return;
      job = std::move(node.claimed.back());
      node.claimed.pop_back();
    }
    (void)node.storage->leases().finish(job.lease, Completed{job.input});
    // The id of a job ends with the number of its caller's turn.
    callers_[static_cast<std::size_t>(std::stoi(job.lease.job.substr(4)) % kCallers)].end();
    Lock lock(node.mutex);
    ++node.idle;
    node.mayClaim.notifyOne();
  }
}

Rate Bench::lives(int count) {
  const std::string database = server().provideDatabase();
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < count; ++i) {
    Node& node = *nodes.emplace_back(std::make_unique<Node>());
    node.storage = open(database);
    node.holder = node.storage->nodes().join("node" + std::to_string(i));
  }
  std::atomic<int> callers = kCallers;
  return measure([&] {
    testkit::runTogether(
        kCallers + count * (1 + kWorkers),
        [&](int thread) {
          Node& node = *nodes[thread % count];
          if (thread >= kCallers + count) return work(node);
          if (thread >= kCallers) return claimFor(*nodes[thread - kCallers]);
          for (int i = thread; i < jobs_; i += kCallers) {
            insert(*node.storage, i);
            {
              Lock lock(node.mutex);
              node.mayHaveJobs = true;
              node.mayClaim.notifyOne();
            }
            callers_[static_cast<std::size_t>(thread)].await();
          }
          if (--callers > 0) return;
          for (const auto& each : nodes) {
            Lock lock(each->mutex);
            each->isOver = true;
            each->mayClaim.notifyAll();
            each->mayWork.notifyAll();
          }
        },
        std::chrono::seconds(300));
  });
}

int run(int rounds, int jobs) {
  Bench bench(jobs);
  const std::vector<std::pair<std::string, std::function<Rate()>>> contestants{
      {"bare, lives of jobs", [&] { return bench.bare(); }},
      {"inserts, 64 callers", [&] { return bench.inserts(); }},
      {"finished jobs, 1 node", [&] { return bench.lives(1); }},
      {"finished jobs, 2 nodes", [&] { return bench.lives(2); }},
      {"finished jobs, 3 nodes", [&] { return bench.lives(3); }},
  };
  std::vector<std::vector<double>> paces(contestants.size());
  std::vector<std::vector<double>> commits(contestants.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const Rate pace = contestants[i].second();
      paces[i].push_back(pace.jobs);
      commits[i].push_back(pace.commits);
    }
  }
  const double bare = median(paces[0]);
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    std::printf("%-24s %8.0f jobs/s   %5.2f of bare   %.3f commits a job\n", contestants[i].first.c_str(),
                median(paces[i]), median(paces[i]) / bare, median(commits[i]));
  }
  return 0;
}

}  // namespace
}  // namespace jobq::bench

int main(int argc, char** argv) {
  int rounds = 5;
  int jobs = 6'400;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--jobs") == 0) jobs = std::atoi(argv[i + 1]);
  }
  return jobq::bench::run(rounds, jobs);
}
