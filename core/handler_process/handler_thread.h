// Handlers on the handler threads of jobq-worker (--isolation thread).
#pragma once

#include <memory>

#include "core/handler_process/job_runner.h"
#include "core/handler_process/local_handler.h"

namespace jobq::worker {

class HandlerThreads final : public JobRunners {
 public:
  /// `handler` outlives the object.
  explicit HandlerThreads(const LocalHandler& handler) : handler_(handler) {}

  std::unique_ptr<JobRunner> make() override;

 private:
  const LocalHandler& handler_;
};

}  // namespace jobq::worker
