#include "judged_stores.h"

namespace jobq::model {

ClaimResult JudgedLeases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                std::uint64_t mostBytes) {
  return compared_.askUnsynced(
      "claim within " + std::to_string(mostBytes) + " bytes",
      [&] { return compared_.real().leases().claim(wants, holder, id, mostBytes); },
      [&](StorageModel& model) { return model.leases().claim(wants, holder, id, mostBytes); });
}

std::vector<ClaimedJob> JudgedLeases::claimed(std::span<const ClaimWant> wants, CallId id) {
  return compared_.ask(
      "claimed", [&] { return compared_.real().leases().claimed(wants, id); },
      [&](StorageModel& model) { return model.leases().claimed(wants, id); });
}

std::vector<LeaseState> JudgedLeases::states(std::span<const LeaseRef> leases) {
  return compared_.ask(
      "states", [&] { return compared_.real().leases().states(leases); },
      [&](StorageModel& model) { return model.leases().states(leases); });
}

std::vector<QueuedEndpoint> JudgedLeases::queuedEndpoints() { return compared_.real().leases().queuedEndpoints(); }

Holder JudgedNodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  const std::uint64_t epoch = compared_.askSynced(
      "join", [&] { return std::size_t{compared_.real().nodes().join(name, culprit).epoch}; },
      [](StorageModel& model) { return std::size_t{model.leases().join()}; });
  return {std::string(name), epoch};
}

FinishResult JudgedLeases::finish(std::span<const EndedAttempt> ends, Durability durability,
                                  const std::optional<FusedClaim>& claim) {
  std::string action = "finish of";
  for (const EndedAttempt& end : ends)
    action += " " + end.lease.job + " by attempt " + std::to_string(end.lease.attempt);
  const auto real = [&] { return compared_.real().leases().finish(ends, durability, claim); };
  const auto model = [&](StorageModel& model) { return model.finish(ends, claim); };
  if (durability == Durability::synced) return compared_.askSynced(action, real, model);
  auto done = compared_.askUnsynced("unsynced " + action, real, model);
  for (const EndedAttempt& end : ends) compared_.noteUnsynced(end.lease.job);
  return done;
}

ReportResult JudgedLeases::progress(const LeaseRef& lease, std::string json) {
  return compared_.askUnsynced(
      "progress of " + lease.job, [&] { return compared_.real().leases().progress(lease, json); },
      [&](StorageModel& model) { return model.leases().progress(lease, json); });
}

SweepResult JudgedLeases::giveBack(std::span<const ReturnedJob> jobs) {
  SweepResult returned = compared_.ask(
      "give back", [&] { return compared_.real().leases().giveBack(jobs); },
      [&](StorageModel& model) { return model.leases().giveBack(jobs); });
  if (!returned.stopped.empty()) compared_.noteSynced();
  return returned;
}

SweepResult JudgedLeases::sweep(std::size_t max) {
  return compared_.askSynced(
      "sweep", [&] { return compared_.real().leases().sweep(max); },
      [&](StorageModel& model) { return model.leases().sweep(); });
}

std::optional<std::size_t> JudgedLeases::ahead(const JobKey& key, std::size_t most) {
  std::optional<std::size_t> said;
  return compared_.ask(
      "place of " + key.id, [&] { return said = compared_.real().leases().ahead(key, most); },
      [&](StorageModel& model) { return model.leases().ahead(key, most, said); });
}

}  // namespace jobq::model
