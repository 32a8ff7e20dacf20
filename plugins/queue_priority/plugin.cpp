// Plugin `queue_priority`: higher `policy.priority` first, equal priorities in the order of arrival. The two classes,
// normal and lowPriority, exist under every policy and come before any rank.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Priority final : public jobq::QueuePolicy {
 public:
  explicit Priority(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  std::int64_t rank(const jobq::JobSpec& job, jobq::Instant, const jobq::GroupState&) const override {
    return -std::int64_t{job.policy.priority};
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Priority>("priority", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
