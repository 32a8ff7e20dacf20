#include "random_leases.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "jobq/time.h"
#include "testkit/returned_jobs.h"

namespace jobq::model {
namespace {

/// Bounds of inputs and of outputs, in bytes, between the sizes of the bodies.
constexpr std::array<std::uint64_t, 6> kBounds{0, 8, 20'020, 40'000, 300'000, 2'000'000};

}  // namespace

std::vector<ClaimedJob> claimJobs(LeaseStore& leases, const std::vector<ClaimWant>& wants, const Holder& holder,
                                  CallId id, const Operation& operation) {
  if (operation.a % 2 == 0) return leases.claim(wants, holder, id).jobs;
  return leases.claim(wants, holder, id, kBounds[operation.b / 2 % kBounds.size()]).jobs;
}

void readJob(JobStore& jobs, const JobKey& key, std::uint32_t choice) {
  (void)jobs.find(key);
  (void)jobs.find(key, kBounds[choice % kBounds.size()]);
}

void lose(LeaseStore& leases, const LeaseRef& lease, const std::vector<LeaseRef>& known, const Operation& operation) {
  std::vector<LeaseRef> lost{lease, kNobodys};
  if (operation.b % 5 == 0) lost.push_back(lease);
  const auto more = static_cast<std::ptrdiff_t>(operation.a % 3 == 0 ? std::min<std::size_t>(known.size(), 3) : 0);
  lost.insert(lost.end(), known.end() - more, known.end());
  (void)testkit::lose(leases, lost);
  if (operation.b % 3 == 0) (void)testkit::lose(leases, lost);  // as after a lost answer
}

void insertBegun(Storage& storage, const JobSpec& job, const QueuePolicy& policy, const Holder& holder,
                 const Operation& operation) {
  const std::string number = std::to_string(operation.b);
  const std::string filler(operation.b % 16 == 0 ? kLargeFiller : 0, ' ');
  const std::array<std::optional<Outcome>, 3> outcomes{std::nullopt, Completed{number + filler},
                                                       Failed{"no " + number, operation.a % 2 == 0 ? number : ""}};
  const std::optional<Outcome>& outcome = outcomes.at(operation.a % 3);
  const Millis age(operation.b % 5 == 0 ? operation.a % 4'000 : operation.a % 3);
  const Begun run{"w" + std::to_string(operation.b % 3), holder, age, outcome ? &*outcome : nullptr};
  (void)storage.jobs().insert(JobSpec(job), policy, {.start = run});
}

void showEnd(Storage& storage, const std::vector<JobKey>& jobs, const JobId& id, std::uint32_t choice) {
  const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const JobKey& key) { return key.id == id; });
  if (job == jobs.end()) return;
  switch (choice % 6) {
    case 0: (void)storage.jobs().find(*job, choice % 4 == 0 ? kAnyBytes : 100, JobExtent::input); return;
    case 1: (void)storage.jobs().list({job->endpoint, {}}, {}); return;
    case 2: (void)storage.chunks().read(*job, 0, 100); return;
    case 3: (void)storage.chunks().consume(*job, 100, 1'000'000U + choice); return;
    default: return;
  }
}

}  // namespace jobq::model
