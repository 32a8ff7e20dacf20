// A greeting handler. Change the two names, then the work.
#include "jobq/abi.h"
#include "jobq/fields.h"
#include "jobq/job_handler.h"
#include "jobq/json_writer.h"

namespace {

class Hello final : public jobq::JobHandler {
  std::string run(std::string_view input, jobq::JobContext&) override {
    const jobq::Fields fields(input);
    fields.allowOnly({"name"});
    const std::string name = fields.requiredText("name", 1, 200);
    return jobq::json::object(
        [&name](jobq::json::ObjectWriter& out) { out.member("greeting", "Hello, " + name + "!"); });
  }
};

class HelloFactory final : public jobq::HandlerFactory {
 public:
  explicit HelloFactory(const jobq::PluginEnv&) {}
  std::unique_ptr<jobq::JobHandler> make(const jobq::HandlerEnv&) override { return std::make_unique<Hello>(); }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, HelloFactory>("hello", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
