// The result of JobStore::insertLater() for a caller that waits.
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "testkit/wait_for.h"

namespace jobq::model {

/// Keeps the result for a future.
class PromisedInsert final : public InsertReceiver {
 public:
  std::future<InsertResult> future() { return promise_.get_future(); }
  void inserted(InsertResult result) noexcept override { promise_.set_value(std::move(result)); }
  void failed(std::exception_ptr error) noexcept override { promise_.set_exception(std::move(error)); }

 private:
  std::promise<InsertResult> promise_;
};

/// Inserts a job with insertLater(), and waits for the result. Returns and throws as JobStore::insert() does; throws
/// testkit::WaitExpired without a result. `storage` has insertLater().
inline InsertResult insertLaterAndWait(Storage& storage, const JobSpec& job, const QueuePolicy& policy,
                                       const std::optional<Idempotency>& idempotency) {
  auto receiver = std::make_unique<PromisedInsert>();
  auto result = receiver->future();
  storage.jobs().insertLater(job, policy, idempotency, std::move(receiver));
  if (result.wait_for(testkit::kHangDeadline) != std::future_status::ready) {
    throw testkit::WaitExpired("the result of a later insert");
  }
  return result.get();
}

}  // namespace jobq::model
