#include "core/jobs/later_submission.h"

#include <utility>

#include "core/jobs/queue_signal.h"

namespace jobq {

/// Owned by the storage until the end of the insert.
class LaterSubmission::Receiver final : public InsertReceiver {
 public:
  Receiver(const Deps& deps, std::shared_ptr<Shared> shared, EndpointPtr endpoint, bool lowPriority)
      : entry_(deps.underWay),
        shared_(std::move(shared)),
        queueSignal_(deps.queueSignal),
        endpoint_(std::move(endpoint)),
        low_(lowPriority) {}

  void inserted(InsertResult result) noexcept override {
    const bool isNew = std::holds_alternative<Inserted>(result);
    const Lock lock(shared_->mutex);
    // The turn that answers the call ends with LaterSubmissions::announce().
    if (isNew && !shared_->isAbandoned) queueSignal_.notifySoon(endpoint_->spec.id, low_);
    if (isNew && shared_->isAbandoned) queueSignal_.notify(endpoint_->spec.id, low_);
    end(std::move(result));
  }

  void failed(std::exception_ptr error) noexcept override {
    const Lock lock(shared_->mutex);
    end(std::move(error));
  }

 private:
  // Resumes under the lock: the resumer may be gone as soon as the submission is.
  void end(Result result) noexcept JOBQ_REQUIRES(shared_->mutex) {
    shared_->result = std::move(result);
    if (shared_->waiting.resumer != nullptr) std::exchange(shared_->waiting, {}).resumeAtReactor();
  }

  const OutsideThreads::Entry entry_;  // destroyed last
  const std::shared_ptr<Shared> shared_;
  QueueSignal& queueSignal_;
  const EndpointPtr endpoint_;  // has the policy of the insert
  const bool low_;
};

LaterSubmission::LaterSubmission(const Deps& deps, JobSpec job, const EndpointPtr& endpoint,
                                 std::optional<Idempotency> idempotency)
    : shared_(std::make_shared<Shared>()) {
  auto receiver = std::make_unique<Receiver>(deps, shared_, endpoint, job.policy.lowPriority);
  deps.storage.jobs().insertLater(std::move(job), *endpoint->policy, std::move(idempotency), std::move(receiver));
}

LaterSubmission::~LaterSubmission() {
  const Lock lock(shared_->mutex);
  shared_->waiting = {};
  shared_->isAbandoned = true;
}

std::optional<InsertResult> LaterSubmission::poll(const SuspendedCall& call) {
  const Lock lock(shared_->mutex);
  if (auto* error = std::get_if<std::exception_ptr>(&shared_->result)) std::rethrow_exception(*error);
  if (auto* result = std::get_if<InsertResult>(&shared_->result)) return std::move(*result);
  shared_->waiting = call;
  return std::nullopt;
}

std::unique_ptr<LaterSubmission> LaterSubmissions::submit(JobSpec job, const EndpointPtr& endpoint,
                                                          std::optional<Idempotency> idempotency) {
  const LaterSubmission::Deps deps{storage_, queueSignal_, underWay_};
  return std::make_unique<LaterSubmission>(deps, std::move(job), endpoint, std::move(idempotency));
}

void LaterSubmissions::announce() { queueSignal_.flush(); }

}  // namespace jobq
