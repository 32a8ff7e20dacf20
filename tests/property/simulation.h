// The core in a simulated world: the job service, the dispatcher and the sweeper as they are, with their storage, on
// one thread and a clock moved by hand; workers, remote workers, couriers, crashes and power cuts are played. A
// schedule of operations decides what happens next, so that every interleaving of turns can come, and comes again with
// its seed.
//
// What must hold at every step: every answer of the storage is the model's (judge.h); a worker has one job at a time,
// and a job one worker; a result is accepted from the last attempt alone, and a job succeeds once. And when all is
// quiet: no job waits where somebody could run it, no job is held by nobody, and no worker is lost.
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

/// What was found; the simulation ends with it.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

enum class Act : std::uint8_t {
  submit,
  submitAndClaim,  // by a caller who waits
  turn,            // of the dispatcher
  start,           // a hired worker is ready, or cannot start
  leave,           // a dismissed worker ends
  report,          // a worker's progress, chunk or log line
  finish,
  remoteClaim,
  remoteRenew,
  remoteFinish,  // perhaps long after its lease has ended
  cancel,
  retry,
  purge,
  ttl,
  stream,
  sweep,
  deliver,
  advance,
  stop,   // and start again, with a goodbye
  crash,  // the power goes at one of the next steps of the disk
};

struct Move {
  Act act{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Move& move);
std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, bool canCrash);

/// How a world is made: by the plugin of its storage, and whether the judge listens. Without him only what a user could
/// see is watched.
struct SimulationPlan {
  std::function<std::shared_ptr<Storage>(Clock&)> open;
  bool judged = true;
  bool canCrash = false;  ///< what is acknowledged survives; the disk is Disk::instance()
};

/// One life of the core after another, until the schedule is over. One thread.
class Simulation {
 public:
  Simulation(SimulationPlan plan, std::uint64_t seed);
  ~Simulation();

  /// Plays the moves, then lets everything come to its end. Throws Finding or Disagreement.
  void play(const std::vector<Move>& moves);

 private:
  struct Workshop;  // plays the executor
  struct Deps;      // what a process has

  struct Run {
    LeaseRef lease;
    EndpointId endpoint;
    WorkerId worker;  // empty for a remote one
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
  std::vector<DeliveryClaim> calls_;  // of several callers, also those whose claim is long gone
  std::set<std::string> replayed_;    // deliveries whose replay was acknowledged, and no call has begun since
  std::vector<Run> remote_;           // also those whose lease is long gone
  std::map<JobId, std::uint32_t> lastAttempt_;
  std::set<JobId> succeeded_;
  int processes_ = 0;
  Instant furthest_{};         // that any clock has been
  mutable std::string found_;  // first
};

}  // namespace jobq::model
