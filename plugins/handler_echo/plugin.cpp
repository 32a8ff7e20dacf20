// Plugin `handler_echo`: the smallest handler, returning the input as output. A copy of the folder is the beginning of
// another handler: the handler's name goes into the table of entries below, the name of the folder into
// `plugins/CMakeLists.txt`.
#include "jobq/abi.h"
#include "jobq/job_handler.h"

namespace {

class Echo final : public jobq::JobHandler {
  std::string run(std::string_view input, jobq::JobContext&) override { return std::string(input); }
};

class EchoFactory final : public jobq::HandlerFactory {
 public:
  explicit EchoFactory(const jobq::PluginEnv&) {}
  std::unique_ptr<jobq::JobHandler> make(const jobq::HandlerEnv&) override { return std::make_unique<Echo>(); }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, EchoFactory>("echo", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
