// Plugin `queue_deadline`: the job with the earliest expiry runs first, jobs with the same expiry in the order of
// arrival. A job expires at its submission plus ttl, or at the moment set by `/status?ttl=`. The rank is computed at a
// submission or a retry, so a ttl set for a queued job moves the job only at its next retry.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Deadline final : public jobq::QueuePolicy {
 public:
  explicit Deadline(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  // Microseconds since the epoch, the unit of `fair`: when a policy replaces the other, queued jobs keep comparable
  // ranks.
  std::int64_t rank(const jobq::JobSpec& job, jobq::Instant now, const jobq::GroupState&) const override {
    return std::chrono::microseconds((now + job.policy.ttl).time_since_epoch()).count();
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Deadline>("deadline", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
