#include "judge.h"

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "text.h"

namespace jobq::model {
namespace {

constexpr std::size_t kAll = 1'000'000;

// Returns the first difference among all values readable without a change.
std::string difference(Storage& real, StorageModel& model, const std::set<EndpointId>& endpoints) {
  std::string difference;
  const auto same = [&](const std::string& what, const std::string& said, const std::string& right) {
    if (difference.empty() && said != right) difference = what + " is\n  " + said + "\ninstead of\n  " + right;
  };
  for (const Entry& entry : model.state.entries) {
    const JobKey key{entry.job.endpoint, entry.job.id};
    constexpr JobExtent kWhole = JobExtent::input;
    same(key.id, text(real.jobs().find(key, kAnyBytes, kWhole)), text(model.jobs().find(key, kAnyBytes, kWhole)));
    same("the stream of " + key.id, text(real.chunks().read(key, 0, kAll)), text(model.chunks().read(key, 0, kAll)));
    same("the log of " + key.id, text(real.chunks().readLog(key)), text(model.chunks().readLog(key)));
  }
  const PageWindow all{0, kAll};
  for (const EndpointId& endpoint : endpoints) {
    same("the list of " + endpoint, text(real.jobs().list({endpoint, {}}, all)),
         text(model.jobs().list({endpoint, {}}, all)));
    same("the deliveries of " + endpoint, text(real.outbox().list(endpoint, "", kAll)),
         text(model.outbox().list(endpoint, "", kAll)));
    same("what is owed by " + endpoint, text(real.outbox().owed(endpoint)), text(model.outbox().owed(endpoint)));
    if (model.state.hasUnswept(endpoint)) continue;
    same("the counters of " + endpoint, text(real.jobs().counts(endpoint)), text(model.jobs().counts(endpoint)));
  }
  return difference;
}

}  // namespace

Judge::Judge(std::shared_ptr<Storage> real) : JudgedSteps(std::move(real)) {}
Judge::~Judge() = default;

void Judge::inspect() {
  compared_.drop("everything", [this](StorageModel& world) {
    world.state.now = now();
    const std::string found = difference(compared_.real(), world, jobs_.endpoints());
    return found.empty() ? records_.difference(world) : found;
  });
}

}  // namespace jobq::model
