// Room 7 (dispatch): who has a free slot? One thread claims jobs in batches for all workers that are free, on all
// endpoints at once, and keeps the number of workers between workersMin and workersMax: one more while normal jobs wait
// and nobody is free, one less when one was idle for the endpoint's idleTimeout. A caller who waits for its job may
// claim on its own thread when a worker is free (Wakeup::ringAndServe): whoever claims reserves the workers first.
// A worker whose handler goes on past the endpoint's stopGrace after it was told to stop is stuck: its slot is
// replaced, for at most maxStuck of them; every further one keeps its slot, until the endpoint has none left to claim
// with.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/service.h"
#include "core/endpoints/endpoint.h"
#include "core/work/executor.h"
#include "core/work/running_jobs.h"
#include "jobq/storage.h"
#include "jobq/worker_store.h"

namespace jobq {

class Wakeup;

class Dispatcher final : public Service, private WorkerEvents {
 public:
  struct Rooms {
    Storage& storage;
    Wakeup& wakeup;
    Executor& executor;
    RunningJobs& running;
    Clock& clock;
    Log& log;
  };
  Dispatcher(const Rooms& rooms, std::string node, const std::vector<EndpointPtr>& endpoints);
  ~Dispatcher() override { stop(); }

  void start() override;

  /// No job is claimed and no worker hired afterwards; workers go on with what they have.
  void stop() override;

  /// What the thread does each time: looks, if it was woken or it is time to; says whether it did. For whoever drives
  /// the dispatcher instead of calling start().
  bool turn();

  /// Fires the stop token of that attempt, if it runs here; its handler has the endpoint's stopGrace to end. Any
  /// thread.
  void stopRun(const LeaseRef& lease);

  /// This node's workers at the moment. Any thread.
  WorkerCounts counts(const EndpointId& endpoint) const;

 private:
  enum class Duty { starting, idle, reserved, busy, stuck, leaving };  // reserved: somebody is claiming a job for it
  struct Member {
    Duty duty = Duty::starting;
    Instant since{};
    LeaseRef lease{};                    // of the job, while busy
    Instant stuckFrom = Instant::max();  // when its job was told to stop
  };
  // The workers of one endpoint.
  struct Crew {
    EndpointPtr endpoint;
    std::map<WorkerId, Member> members;
    Instant startAfter{};  // no hiring before, after a worker failed to start
    Millis backoff{0};
  };

  void workerReady(const EndpointId& endpoint, const WorkerId& worker) override;
  void workerGone(const EndpointId& endpoint, const WorkerId& worker, const std::string& failure) override;

  void loop();
  void lookAndPlan();
  void look();
  void serve(const EndpointId& endpoint);
  std::vector<ClaimWant> reserveWorkers(const EndpointId* only);
  void settle(const std::vector<ClaimWant>& wants, const std::vector<ClaimedJob>& jobs);
  bool claimBatch(const std::vector<ClaimWant>& wants);
  void hand(std::vector<ClaimedJob> jobs);
  void takeBack(const LeaseRef& lease);
  void noticeStuck();
  void dismissIdle();
  void hireWhereNeeded();
  bool wantsMore(const Crew& crew) const JOBQ_REQUIRES(mutex_);
  bool wantsOneMore(const EndpointId& endpoint);
  void hire(const EndpointPtr& endpoint);
  Instant nextLook() const;

  static std::size_t count(const Crew& crew, Duty duty);
  static std::size_t slots(const Crew& crew);

  const Rooms rooms_;
  const std::string node_;

  mutable Mutex mutex_;
  std::map<EndpointId, Crew> crews_ JOBQ_GUARDED_BY(mutex_);
  int serving_ JOBQ_GUARDED_BY(mutex_) = 0;  // callers who claim on their own thread
  Condition served_;
  std::atomic<Instant> looksAt_{};  // when the dispatcher looks even if nobody wakes it
  std::uint64_t hired_ = 0;         // the dispatcher's thread
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace jobq
