// The work of a process of tests/conformance/mysql_processes_test.cpp: every operation of the storage contract, in a
// random order. Each answer that a judge needs is a line of the process's log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "mysql_fixture.h"
#include "open_mysql.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace jobq::test {

inline constexpr int kSharedKeys = 8;  // idempotency keys that all processes use

/// The work of one process. The name of the node outlives the processes.
struct PeerPlan {
  std::string node;
  std::string life;  ///< names the process: the begin of the ids made by the process
  unsigned seed = 1;
  std::filesystem::path log;
  std::filesystem::path dead;  ///< exists when the killed process is dead, and holds the seconds that may pass then
};

/// Parts of a process needed by all its work.
class PeerTools {
 public:
  PeerTools(PeerPlan plan, Storage& storage);

  /// Adds a line to the log, which survives the end of the process.
  void say(const std::string& fact) const;
  CallId nextCall() { return (static_cast<CallId>(plan.seed) << 32) + ++lastCall_; }
  /// Returns a number below `end`.
  unsigned random(std::size_t end) { return static_cast<unsigned>(random_() % end); }

  const PeerPlan plan;
  Storage& storage;
  Holder holder;

 private:
  std::minstd_rand random_;
  const int log_;
  CallId lastCall_ = 0;
};

/// Operations on jobs, leases and chunks. A wrong answer is thrown as Error.
class PeerJobs {
 public:
  explicit PeerJobs(PeerTools& tools) : tools_(tools) {}

  void submit();
  void claim();
  /// Reports chunks, progress and a log line of a job that runs here.
  void report();
  /// Ends a job that runs here, or gives the job back.
  void end();
  void cancel();
  void retry();
  void consume();
  /// Calls the operations without a change.
  void askEverything();
  /// Submits jobs to another endpoint and purges its queue.
  void useOtherEndpoint();

  /// Returns whether all jobs are submitted, and no job runs here.
  bool hasDoneItsPart() const;

 private:
  struct Run {
    LeaseRef lease;
    std::uint64_t chunks = 0;
    std::uint64_t lines = 0;
  };
  Run* anyRun() { return running_.empty() ? nullptr : &running_[tools_.random(running_.size())]; }
  void drop(const Run& run) { running_.erase(running_.begin() + (&run - running_.data())); }
  std::string anyKnown() { return known_[tools_.random(known_.size())]; }

  PeerTools& tools_;
  testkit::ArrivalOrder policy_;
  int submitted_ = 0;
  int others_ = 0;
  std::vector<std::string> known_;
  std::vector<Run> running_;
  std::vector<LeaseRef> failed_;
};

/// Operations on records.
class PeerRecords {
 public:
  explicit PeerRecords(PeerTools& tools) : tools_(tools) {}

  /// Creates a record with a fixed id: the process whose creation comes second reads the record of the first.
  void createAdminKey();
  /// Creates, changes or removes a record of this process, and follows all changes.
  void change();
  /// Adds 1 to a number that all processes change.
  void countUp();

 private:
  void follow();

  PeerTools& tools_;
  std::uint64_t followed_ = 0;
};

/// A process with a storage of its own.
class Peer {
 public:
  Peer(const PeerPlan& plan, const testkit::Settings& settings)
      : storage_(openMysql(clock_, silent_, settings)), tools_(plan, *storage_), jobs_(tools_), records_(tools_) {}

  /// Works until another process was killed and no work is left. Throws Error for a wrong answer.
  void work();

 private:
  void doOneThing();
  void deliver();
  void keepAlive();
  int secondsLeft() const;
  bool isDone();

  testkit::ManualClock clock_;
  testkit::SilentLog silent_;
  const std::unique_ptr<Storage> storage_;
  PeerTools tools_;
  PeerJobs jobs_;
  PeerRecords records_;
  int passed_ = 0;  // seconds
  bool isIdle_ = false;
};

}  // namespace jobq::test
