// A handler that greets. Change the two names, then the work.
#include "jobq/abi.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"

namespace {

class Hello final : public jobq::JobHandler {
  std::string run(std::string_view input, jobq::JobContext&) override {
    const auto fields = std::get<jobq::json::Document>(jobq::json::read(input));
    const auto name = fields.find("name");
    if (!name || name->kind != jobq::json::Kind::string) throw jobq::JobFailed("name is missing: send a string");
    return "{\"greeting\":" + jobq::json::quoted("Hello, " + jobq::json::decode(name->raw) + "!") + "}";
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
