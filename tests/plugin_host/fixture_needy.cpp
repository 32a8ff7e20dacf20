// Needs a second library, removed by the test.
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

extern "C" int jobqFixtureDependency();

namespace {

class Needy final : public jobq::QueuePolicy {
 public:
  explicit Needy(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  std::int64_t rank(const jobq::JobSpec&, jobq::Instant, const jobq::GroupState&) const override {
    return jobqFixtureDependency();
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Needy>("needy", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
