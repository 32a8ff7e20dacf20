// A queue policy that throws a forbidden exception, made for tests of the answer to a fault of the server.
#include <stdexcept>

#include "jobq/abi.h"
#include "jobq/queue_policy.h"

namespace {

class Broken final : public jobq::QueuePolicy {
 public:
  explicit Broken(const jobq::PluginEnv&) {}
  std::string group(const jobq::JobSpec&) const override { throw std::logic_error("it is broken on purpose"); }
  std::int64_t rank(const jobq::JobSpec&, jobq::Instant, const jobq::GroupState&) const override { return 0; }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::QueuePolicy, Broken>("broken", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
