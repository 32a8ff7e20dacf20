#include "core/handler_process/handler_thread.h"

#include "core/model/handler_run.h"

namespace jobq::worker {
namespace {

class HandlerThread final : public JobRunner {
 public:
  explicit HandlerThread(const LocalHandler& handler) : local_(handler) {}

  bool prepare(const std::stop_token&) override {
    if (!handler_) handler_ = local_.make();
    return true;
  }
  std::optional<Outcome> run(std::string_view input, JobContext& context) override {
    return runHandler(*handler_, input, context);
  }

 private:
  const LocalHandler& local_;
  std::unique_ptr<JobHandler> handler_;
};

}  // namespace

std::unique_ptr<JobRunner> HandlerThreads::make() { return std::make_unique<HandlerThread>(handler_); }

}  // namespace jobq::worker
