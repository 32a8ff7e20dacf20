// Higher `policy.priority` first, first come first served among equals. Two classes, normal and lowPriority, hold under
// every policy and come before any rank.
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
