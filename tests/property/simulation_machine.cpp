#include "simulation_machine.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "../fault/disk.h"
#include "jobq/transitions.h"

namespace jobq::model {

Process::Process(World& world, LocalWorkers& workers, const std::string& node)
    : log(world.rules),
      queueSignal({"kept", "scaled", "single"}),
      claimer(queueSignal),
      watch(*world.clock),
      jobs(world.storage(), queueSignal, claimer, watch, deliveries),
      later(world.storage(), queueSignal),
      reports(world.storage(), queueSignal, claimer, watch, deliveries),
      pools({queueSignal, *world.clock, log}, world.endpoints),
      life(world.storage(), node),
      supervisor({pools, world.storage(), queueSignal, workers, running, life, log}, node),
      inserts(world.storage(), watch, *world.clock, log),
      dispatcher({pools, supervisor, world.storage(), queueSignal, claimer, workers, running, inserts, life,
                  *world.clock, log}),
      swept([this](const SweepResult& result) {
        reports.announce(result);
        for (const LeaseRef& lease : result.stopped) supervisor.stopRun(lease);
      }),
      sweeper(world.storage(), *world.clock, log) {
  sweeper.setListener(swept);
  for (const EndpointPtr& endpoint : world.endpoints) {
    for (int i = 0; i < DeferredInserts::kProof; ++i) inserts.noteRun(endpoint->spec.id, true);
  }
}

void Machine::open() {
  for (;;) {
    try {
      std::shared_ptr<Storage> storage = world_.plan.open(*world_.clock);
      workers_ = std::make_unique<LocalWorkers>(world_);
      world_.judge->reopen(std::move(storage), std::exchange(formerEnd_, FormerEnd::process));
      if (world_.plan.judged) world_.judge->inspect();
      process_ = std::make_unique<Process>(world_, *workers_, "node" + std::to_string(++processes_));
      beginLife();
      askForUndone();
      process_->sweeper.sweepAll();
      return;
    } catch (const StorageError& error) {
      world_.rules.check(world_.plan.canCrash && fault::Disk::instance().isCut(),
                         std::string("opening failed: ") + error.what());
      closeAfterCrash();
    }
  }
}

// A server on a storage of one process begins one life. A job that runs before the insert is inserted in the life in
// which the run began.
void Machine::beginLife() {
  process_->inserts.storeAll();
  process_->life.join();
  world_.holder = process_->life.holder();
}

void Machine::askForUndone() {
  const std::map<JobId, EndpointId> undoable = world_.rules.undoable();
  for (const auto& [id, endpoint] : undoable) {
    const auto job = world_.storage().jobs().find({endpoint, id});
    if (job && terminal(job->state)) world_.rules.told(id, job->state);
  }
}

void Machine::closeAfterCrash() {
  process_.reset();
  world_.judge->close();
  fault::Disk::instance().restore(world_.random);
  world_.rules.losePower();
  formerEnd_ = FormerEnd::power;
}

// A starting machine may have another time of day, by an hour at most.
void Machine::wakeUpAtAnotherTime() {
  constexpr std::array kDrifts{0, 0, 0, -3'600'000, -2'000, 2'000, 3'600'000};
  furthest_ = std::max(furthest_, world_.clock->now());
  const Instant wanted = world_.clock->now() + Millis(kDrifts[world_.random() % kDrifts.size()]);
  auto clock = std::make_unique<testkit::ManualClock>();
  const Instant now = std::max({wanted, furthest_ - Millis(3'600'000), clock->now()});
  clock->advance(now - clock->now());
  world_.clock = std::move(clock);
}

void Machine::restart() {
  process_->dispatcher.stop();
  process_->inserts.storeAll();
  for (const Run& run : workers_->running()) process_->reports.giveBack({&run.lease, 1}, false);
  process_.reset();
  world_.judge->close();
  if (!fault::Disk::instance().isCut()) world_.rules.stopInOrder();
  wakeUpAtAnotherTime();
  open();
}

void Machine::recover() {
  if (!world_.plan.canCrash || !fault::Disk::instance().isCut()) return;
  closeAfterCrash();
  wakeUpAtAnotherTime();
  open();
}

void Machine::endCrashes() {
  if (!world_.plan.canCrash) return;
  fault::Disk::instance().cutAt(0);
  try {
    world_.judge->compared().real().check();
  } catch (const StorageError&) {
    world_.rules.check(fault::Disk::instance().isCut(), "the storage takes no write");
  }
  recover();
}

}  // namespace jobq::model
