#include "judged_stores.h"

namespace jobq::model {

std::vector<ClaimedJob> JudgedLeases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id) {
  return compared_.askUnsynced(
      "claim", [&] { return compared_.real().leases().claim(wants, holder, id); },
      [&](StorageModel& model) { return model.leases().claim(wants, holder, id); });
}

BoundedClaim JudgedLeases::doClaimWithin(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                                         std::uint64_t mostBytes) {
  return compared_.askUnsynced(
      "claim within " + std::to_string(mostBytes) + " bytes",
      [&] { return compared_.real().leases().claimWithin(wants, holder, id, mostBytes); },
      [&](StorageModel& model) { return model.leases().claimWithin(wants, holder, id, mostBytes); });
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

Holder JudgedNodes::join(std::string_view name) {
  const std::uint64_t epoch = compared_.askSynced(
      "join", [&] { return std::size_t{compared_.real().nodes().join(name).epoch}; },
      [](StorageModel& model) { return std::size_t{model.leases().join()}; });
  return {std::string(name), epoch};
}

ReportResult JudgedLeases::finish(const LeaseRef& lease, Outcome outcome) {
  const std::string action = "finish of " + lease.job + " by attempt " + std::to_string(lease.attempt);
  return compared_.askSynced(
      action, [&] { return compared_.real().leases().finish(lease, outcome); },
      [&](StorageModel& model) { return model.leases().finish(lease, outcome); });
}

std::vector<ReportResult> JudgedLeases::doFinishAll(std::span<const EndedAttempt> ends) {
  return compared_.askSynced(
      "finish of " + std::to_string(ends.size()) + " attempts",
      [&] { return compared_.real().leases().finishAll(ends); },
      [&](StorageModel& model) {
        std::vector<ReportResult> results;
        for (const EndedAttempt& end : ends) results.push_back(model.leases().finish(end.lease, end.outcome));
        return results;
      });
}

std::optional<FinishedAndClaimed> JudgedLeases::finishAndClaim(const LeaseRef& lease, const Outcome& outcome,
                                                               const ClaimWant& want, const Holder& holder, CallId id) {
  bool hasStep = true;
  auto done = compared_.ask(
      "finish and claim by " + lease.job,
      [&] {
        auto said = compared_.real().finishAndClaim(lease, outcome, want, holder, id);
        hasStep = said.has_value();
        return said;
      },
      [&](StorageModel& model) -> std::optional<FinishedAndClaimed> {
        if (!hasStep) return std::nullopt;
        return model.finishAndClaim(lease, outcome, want, holder, id);
      });
  if (done) compared_.noteSynced();
  return done;
}

std::optional<FinishedAndClaimed> JudgedLeases::doFinishUnsynced(const LeaseRef& lease, const Outcome& outcome,
                                                                 const ClaimWant& want, const Holder& holder,
                                                                 CallId id) {
  bool hasStep = true;
  auto done = compared_.askUnsynced(
      "unsynced finish of " + lease.job,
      [&] {
        auto said = compared_.real().leases().finishUnsynced(lease, outcome, want, holder, id);
        hasStep = said.has_value();
        return said;
      },
      [&](StorageModel& model) -> std::optional<FinishedAndClaimed> {
        if (!hasStep) return std::nullopt;
        return model.finishAndClaim(lease, outcome, want, holder, id);
      });
  if (done) compared_.noteUnsynced(lease.job);
  return done;
}

ReportResult JudgedLeases::progress(const LeaseRef& lease, std::string json) {
  return compared_.askUnsynced(
      "progress of " + lease.job, [&] { return compared_.real().leases().progress(lease, json); },
      [&](StorageModel& model) { return model.leases().progress(lease, json); });
}

std::size_t JudgedLeases::release(std::span<const LeaseRef> leases) {
  const std::size_t released = compared_.ask(
      "release", [&] { return compared_.real().leases().release(leases); },
      [&](StorageModel& model) { return model.leases().release(leases); });
  if (released > 0) compared_.noteSynced();
  return released;
}

SweepResult JudgedLeases::doLose(std::span<const LeaseRef> leases) {
  SweepResult lost = compared_.ask(
      "lose", [&] { return compared_.real().leases().lose(leases); },
      [&](StorageModel& model) { return model.leases().lose(leases); });
  if (!lost.stopped.empty()) compared_.noteSynced();
  return lost;
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
