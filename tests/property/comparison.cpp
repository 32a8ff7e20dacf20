#include "comparison.h"

#include <utility>

namespace jobq::model {

Comparison::Comparison(std::shared_ptr<Storage> real) : real_(std::move(real)), worlds_(1) {}

void Comparison::reopen(std::shared_ptr<Storage> real, FormerEnd end) {
  real_ = std::move(real);
  if (end == FormerEnd::power) worlds_.insert(worlds_.end(), unsynced_.begin(), unsynced_.end());
  noteSynced();  // the first sync of the new process brings the steps of the former one to the disk too
  worlds_.insert(worlds_.end(), doubts_.begin(), doubts_.end());
  doubts_.clear();
  failed_ = false;
}

void Comparison::noteShown(const JobId& job) {
  const auto step = unsyncedJobs_.find(job);
  if (step == unsyncedJobs_.end()) return;
  noteSyncedUpTo(step->second);
  unsyncedJobs_.erase(step);
}

void Comparison::drop(const std::string& action, const std::function<std::string(StorageModel&)>& contradiction) {
  std::string all;
  std::erase_if(worlds_, [&](StorageModel& world) {
    const std::string said = contradiction(world);
    if (!said.empty()) all += (all.empty() ? "" : "\nor, had the operation happened that failed before,\n") + said;
    return !said.empty();
  });
  if (!worlds_.empty()) return;
  worlds_.emplace_back();
  if (disagreement_.empty()) disagreement_ = action + " " + all;
  throw Disagreement(disagreement_);
}

}  // namespace jobq::model
