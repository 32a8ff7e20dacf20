// Fakes of interfaces between the stages of the server, each controlled by a test.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/jobs/claimer.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/limits/rate_limit_gate.h"
#include "core/maintenance/sweeper.h"
#include "core/model/delivery_notifier.h"
#include "core/model/overdue_jobs.h"
#include "core/model/webhook_backoff.h"
#include "core/webhooks/delivery_pool.h"
#include "core/webhooks/delivery_work.h"
#include "core/webhooks/receiver_table.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/outbox_store.h"
#include "jobq/queue_policy.h"
#include "jobq/time.h"

namespace jobq::test {

/// Calls a function of the test instead of a claim.
class CallingClaimer final : public Claimer {
 public:
  explicit CallingClaimer(std::function<void()> claim) : claim_(std::move(claim)) {}
  void claimForCaller(const EndpointId&) override { claim_(); }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob&, const EndedAttempt&, bool) override {
    return std::nullopt;
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec&, const QueuePolicy&) override { return nullptr; }
  /// Has no idle worker.
  std::optional<InsertResult> insertForCaller(JobSpec&, const QueuePolicy&,
                                              const std::optional<Idempotency>&) override {
    return std::nullopt;
  }

 private:
  const std::function<void()> claim_;
};

/// Counts the notifications.
class CountingDeliveries final : public DeliveryNotifier {
 public:
  void notify() noexcept override { ++count; }
  std::atomic<int> count = 0;
};

/// Has the same load for every endpoint.
class FixedLoad final : public EndpointLoad {
 public:
  std::uint32_t nodes() const override { return nodeCount; }
  std::uint32_t running(const EndpointId&) const override { return busyWorkers; }
  std::uint64_t waiting(const EndpointId&) const override {
    ++askedForWaiting;
    return waitingJobs;
  }
  std::uint32_t nodeCount = 1;
  std::uint32_t busyWorkers = 0;
  std::uint64_t waitingJobs = 0;
  mutable int askedForWaiting = 0;
};

/// Has the secrets and the attempts set by the test.
class SetSecrets final : public WebhookPolicy {
 public:
  WebhookBackoff webhookRetries(const EndpointId&) const override { return retries; }
  std::string webhookKey(const EndpointId& endpoint) const override {
    const auto found = keys.find(endpoint);
    return found == keys.end() ? std::string() : found->second;
  }
  std::map<EndpointId, std::string> keys;
  WebhookBackoff retries;
};

/// Calls a function of the test for each batch and each task.
class CallingSweepListener final : public SweepListener {
 public:
  using Task = std::function<void()>;
  explicit CallingSweepListener(std::function<void(const SweepResult&)> swept, Task before = {}, Task after = {})
      : swept_(std::move(swept)), before_(std::move(before)), after_(std::move(after)) {}

  void beforeSweep() override {
    if (before_) before_();
  }
  void swept(const SweepResult& result) override { swept_(result); }
  void sweepUnanswered() override {
    ++unanswered_;
    if (failsOnce_.exchange(false)) throw StorageError("the storage has gone");
  }
  void afterSweep() override {
    if (after_) after_();
  }

  /// Returns the number of batches without an answer, as reported to the listener.
  int unanswered() const { return unanswered_; }
  /// Lets the next sweepUnanswered() throw StorageError.
  void failOnce() { failsOnce_ = true; }

 private:
  std::atomic<int> unanswered_ = 0;
  std::atomic<bool> failsOnce_ = false;
  const std::function<void(const SweepResult&)> swept_;
  const Task before_;
  const Task after_;
};

/// Calls a function of the test, and has no work left.
class CallingOverdueJobs final : public OverdueJobs {
 public:
  explicit CallingOverdueJobs(std::function<void()> end) : end_(std::move(end)) {}
  bool endOverdue() override {
    end_();
    return false;
  }

 private:
  const std::function<void()> end_;
};

/// Calls functions of the test for each delivery and each free place.
class CallingRunner final : public DeliveryRunner {
 public:
  CallingRunner(std::function<CallEnd(const Delivery&)> deliver, std::function<void()> freed)
      : deliver_(std::move(deliver)), freed_(std::move(freed)) {}
  std::unique_ptr<DeliveryWork> workOn(Delivery delivery) override {
    return std::make_unique<Work>(deliver_, std::move(delivery));
  }
  void placeFreed(std::optional<Instant>) noexcept override { freed_(); }

 private:
  class Work final : public DeliveryWork {
   public:
    Work(const std::function<CallEnd(const Delivery&)>& deliver, Delivery delivery)
        : deliver_(deliver), delivery_(std::move(delivery)) {}
    std::optional<DeliveryEnd> begin(CallListener&) noexcept override { return DeliveryEnd{deliver_(delivery_), {}}; }
    DeliveryEnd conclude() noexcept override { return {}; }

   private:
    const std::function<CallEnd(const Delivery&)>& deliver_;
    const Delivery delivery_;
  };

  const std::function<CallEnd(const Delivery&)> deliver_;
  const std::function<void()> freed_;
};

}  // namespace jobq::test
