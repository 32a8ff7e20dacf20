// Plugin `queue_fifo`: first come, first served. The storage orders equal ranks by arrival, so all ranks are equal.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Fifo final : public jobq::QueuePolicy {
 public:
  explicit Fifo(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  std::int64_t rank(const jobq::JobSpec&, jobq::Instant, const jobq::GroupState&) const override { return 0; }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Fifo>("fifo", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
