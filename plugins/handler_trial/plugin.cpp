// Plugin `handler_trial`: a handler that follows the instructions in its input (`trial_request.h`). Tests and operators
// use the handler to try out a server, its limits, its stops and its crashes.
#include "jobq/abi.h"
#include "jobq/job_handler.h"
#include "trial_run.h"

namespace jobq::trial {

class TrialHandler final : public JobHandler {
 public:
  explicit TrialHandler(Clock& clock) : clock_(clock) {}

  std::string run(std::string_view input, JobContext& context) override {
    return runTrial(readTrial(input), context, clock_);
  }

 private:
  Clock& clock_;
};

class TrialFactory final : public HandlerFactory {
 public:
  explicit TrialFactory(const PluginEnv& env) : clock_(env.clock) {}

  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return std::make_unique<TrialHandler>(clock_); }

 private:
  Clock& clock_;
};

}  // namespace jobq::trial

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::HandlerFactory, jobq::trial::TrialFactory>("trial", "1.0.0")};
JOBQ_PLUGIN(kEntries)
