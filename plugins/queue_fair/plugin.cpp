// Plugin `queue_fair`: shares between API keys. Keys with queued jobs take turns, however many jobs each key has. The
// policy is start-time fair queueing (Goyal, Vin, Cheng 1996) with jobs of equal size: ranks are moments of a virtual
// time, and the lowest rank of a queued job is the present. The next job of a key ranks one higher than the last job of
// the key, but never before the present. Consequences:
// - A key that is new or was quiet starts at the head of the queue: unused turns are no credit.
// - Keys with queued jobs have the same ranks and take turns. The storage's order of arrival decides among equal ranks.
// - A retried job ranks like a new job of its key.
//
// The virtual time of an empty queue is the real time in microseconds. Each job raises the highest rank by at most one,
// and a queue receives fewer than a million jobs a second. The highest rank therefore stays below the clock: when the
// queue is empty, all keys start anew, and a finished burst counts against no key.
//
// The two classes, normal and lowPriority, are two queues, and the jobs of a key in one class do not count in the
// other. Jobs without a key form a group like the jobs of a key.
#include <cstdint>
#include <limits>

#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

using jobq::GroupState;
using jobq::Instant;
using jobq::JobSpec;

/// Largest plausible lead of a key's last rank over the present, in ranks: a minute of the clock, and more jobs than a
/// key can have queued. A larger lead comes from another policy or from a clock that was set back, and is ignored; a
/// smaller one disappears when the queue is empty.
constexpr std::uint64_t kMostAhead = 60'000'000;

class Fair final : public jobq::QueuePolicy {
 public:
  explicit Fair(const jobq::PluginEnv&) {}

  std::string group(const JobSpec& job) const override {
    return (job.policy.lowPriority ? "low:" : "normal:") + job.apiKeyId;
  }

  std::int64_t rank(const JobSpec&, Instant now, const GroupState& state) const override {
    if (!state.lowestWaiting) return std::chrono::microseconds(now.time_since_epoch()).count();
    const std::int64_t present = *state.lowestWaiting;
    if (!state.lastRank || *state.lastRank < present) return present;
    const auto ahead = static_cast<std::uint64_t>(*state.lastRank) - static_cast<std::uint64_t>(present);
    // A rank given by another policy may be the largest number.
    const bool last = *state.lastRank == std::numeric_limits<std::int64_t>::max();
    return ahead < kMostAhead && !last ? *state.lastRank + 1 : present;
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Fair>("fair", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
