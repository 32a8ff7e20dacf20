// Has the virtual function, and reads the field, of the next ABI minor (make_sdk.py).
#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Summarising final : public jobq::QueuePolicy {
 public:
  explicit Summarising(const jobq::PluginEnv& env) : processors_(env.processors) {}
  std::string group(const jobq::JobSpec&) const override { return {}; }
  std::int64_t rank(const jobq::JobSpec&, jobq::Instant, const jobq::GroupState&) const override { return 3; }

 private:
  jobq::Summary doSummary(const jobq::JobSpec&) const override {
    return {"ranks on " + std::to_string(processors_) + " processors"};
  }

  const std::int64_t processors_;
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Summarising>("fixture", "2.4.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
