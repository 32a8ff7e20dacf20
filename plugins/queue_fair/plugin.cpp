// Shares between API keys: of each key that has jobs waiting one runs in turn, however many the others have. This is
// start-time fair queueing (Goyal, Vin, Cheng 1996) with jobs of one size: ranks are moments of a virtual time, and the
// lowest that waits is its present. A key's next job stands one behind its last one, but never before the present, so
//  - a key that is new, or has been quiet, starts at the head of the line: what it did not use is no credit,
//  - keys with jobs waiting have the same ranks and take turns, and the storage's order by arrival settles whose is
//  next,
//  - a retry stands where a new job of its key would.
//
// When nothing waits, virtual time is the real one in microseconds. A line is not submitted to a million times a
// second, so the ranks that were given since it was last empty, each one above another, have not come as far as the
// clock: all keys start anew, and a burst that has been worked off is held against nobody.
//
// The two classes, normal and lowPriority, are two lines, and a key's jobs in one do not count in the other. Jobs
// without a key are a group like that of a key.
#include <cstdint>
#include <limits>

#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

using jobq::GroupState;
using jobq::Instant;
using jobq::JobSpec;

/// More jobs than one key can have waiting. A last rank further ahead is of another time: another policy's jobs wait,
/// or the clock has been set back since (a minute here; less than that mends itself).
constexpr std::uint64_t kMostWaiting = 60'000'000;

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
    // What another policy gave may be the last number there is.
    const bool last = *state.lastRank == std::numeric_limits<std::int64_t>::max();
    return ahead < kMostWaiting && !last ? *state.lastRank + 1 : present;
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Fair>("fair", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
