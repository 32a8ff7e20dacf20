// Who expires first runs first, first come first served among equals. A job expires at its submission + ttl, or at what
// /status?ttl= has set; its place follows from what that is when it is submitted or retried, so a ttl that is set while
// it waits moves it at its next retry only.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Deadline final : public jobq::QueuePolicy {
 public:
  explicit Deadline(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  // Microseconds since the epoch, the unit of `fair`: where one policy replaces the other, what waits keeps its number.
  std::int64_t rank(const jobq::JobSpec& job, jobq::Instant now, const jobq::GroupState&) const override {
    return std::chrono::microseconds((now + job.policy.ttl).time_since_epoch()).count();
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Deadline>("deadline", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
