// The core in a simulated world: the real job service, dispatcher and sweeper with their storage, on one thread and a
// clock moved by hand. Workers, remote workers, webhook deliveries, crashes and power cuts are played. A schedule of
// operations decides the next event, so every interleaving of turns can occur, and recurs with its seed.
//
// Rules at every step: every answer of the storage equals the answer of the model (`tests/property/judge.h`); a worker
// has one job at a time, and a job one worker; a result is accepted from the last attempt alone, and a job succeeds
// once. Rules at rest: no job waits beside a worker able to run the job, no job is held without a holder, and no worker
// is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/maintenance/sweeper.h"
#include "core/workers/dispatcher.h"
#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "judge.h"
#include "random_operations.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

/// A broken rule; ends the simulation.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

enum class Act : std::uint8_t {
  submit,
  submitAndClaim,  // by a waiting caller
  turn,            // a turn of the dispatcher
  start,           // a starting worker becomes ready, or its start fails
  leave,           // a stopping worker ends
  report,          // a worker's progress, chunk or log line
  finish,
  remoteClaim,
  remoteRenew,
  remoteFinish,  // perhaps long after the end of its lease
  cancel,
  retry,
  purge,
  ttl,
  stream,
  sweep,
  deliver,
  advance,
  stop,   // an orderly stop, then a start
  crash,  // the power goes at one of the next steps of the disk
};

struct Move {
  Act act{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Move& move);
std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, bool canCrash);

/// The plan of a world: the plugin of its storage, and whether the judge compares answers. Without the judge only
/// effects visible to a user are checked.
struct SimulationPlan {
  std::function<std::shared_ptr<Storage>(Clock&)> open;
  bool judged = true;
  bool canCrash = false;  ///< acknowledged changes survive a crash; the disk is Disk::instance()
};

/// Runs one life of the core after another, until the schedule is over. Confined to one thread.
class Simulation {
 public:
  Simulation(SimulationPlan plan, std::uint64_t seed);
  ~Simulation();

  /// Plays the moves, then lets all jobs come to their end. Throws Finding or Disagreement.
  void play(const std::vector<Move>& moves);

 private:
  struct Workshop;  // plays the executor
  struct NodeLog;   // the log of a process
  struct Deps;      // the parts of a process

  struct Run {
    LeaseRef lease;
    EndpointId endpoint;
    WorkerId worker;  // empty for a remote worker
  };

  void open();
  void closeAfterCrash();
  void wakeUpAtAnotherTime();
  void recover();
  void endCrashes();
  void act(const Move& move);
  void submit(const Move& move, bool waits);
  void report(const Run& run, const Move& move);
  bool finish(const Run& run, const Move& move);
  void finishLocal(std::size_t which, const Move& move);
  void finishRemote(std::size_t which, const Move& move);
  void remoteClaim(const Move& move);
  void change(const Move& move);
  void deliver(const Move& move);
  OutboxStore& outbox();
  void claimDeliveries();
  void checkDeliveries();
  void restart();
  void settle();
  bool stepTowardsQuiet();
  void checkRest();
  void checkQuiet();
  void checkWorkers() const;
  void begins(const Run& run);
  void check(bool holds, const std::string& what) const;
  const Endpoint& endpoint(std::uint32_t number) const;

  const SimulationPlan plan_;
  std::mt19937_64 random_;
  const Turns policy_;
  std::vector<EndpointPtr> endpoints_;
  std::unique_ptr<testkit::ManualClock> clock_;
  std::shared_ptr<Judge> judge_;
  std::unique_ptr<Workshop> workshop_;
  std::unique_ptr<Deps> deps_;

  std::vector<JobKey> jobs_;
  std::vector<DeliveryClaim> calls_;  // calls of several callers, also with a claim long gone
  std::set<std::string> replayed_;    // deliveries with an acknowledged replay and no call since
  std::vector<Run> remote_;           // remote runs, also with a lease long gone
  std::map<JobId, std::uint32_t> lastAttempt_;
  std::set<JobId> succeeded_;
  int processes_ = 0;
  Instant furthest_{};         // furthest time of any clock
  mutable std::string found_;  // first finding
};

}  // namespace jobq::model
