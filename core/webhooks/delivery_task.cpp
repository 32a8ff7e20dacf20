#include "core/webhooks/delivery_task.h"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/backoff.h"
#include "core/base/words.h"
#include "core/webhooks/signature.h"
#include "core/webhooks/webhook_body.h"
#include "jobq/machine_fault.h"

namespace jobq {
namespace {

CallEnd endOf(bool answered, Millis duration) {
  if (answered) return duration <= kPromptAnswer ? CallEnd::answered : CallEnd::answeredLate;
  return duration <= kPromptAnswer ? CallEnd::unknown : CallEnd::timedOut;
}

// Returns the failed attempt for an exception of a transport. Throws the exception again if it is a fault of the
// machine.
DeliveryFailed failureOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error& error) {
    if (isMachineFault(error.code().value())) throw;
    return {error.what(), 0, ""};
  } catch (const std::exception& error) {
    return {error.what(), 0, ""};
  } catch (...) {
    return {"the transport threw an exception that is not a std::exception", 0, ""};
  }
}

}  // namespace

DeliveryTask::DeliveryTask(const Deps& deps, Delivery delivery, std::stop_token stop)
    : deps_(deps),
      delivery_(std::move(delivery)),
      stop_(std::move(stop)),
      leaseEnds_(deps_.clock.now() + kDeliveryLease) {}

std::optional<DeliveryEnd> DeliveryTask::begin(CallListener& listener) noexcept {
  Step step = Step::over;
  try {
    step = beginAttempt(listener);
  } catch (...) {
    putOff(std::current_exception());
  }
  if (step == Step::callUnderWay) return std::nullopt;  // perhaps the task has gone by now
  return end_;
}

DeliveryEnd DeliveryTask::conclude() noexcept {
  try {
    recordCall();
  } catch (...) {
    putOff(std::current_exception());
  }
  return end_;
}

// Leaves a delivery for later whose work an exception has ended.
void DeliveryTask::putOff(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::bad_alloc& error) {
    postponeUncounted(error);
  } catch (const std::system_error& error) {  // of failureOf(), or a thread cannot start
    postponeUncounted(error);
  } catch (const std::exception& error) {  // due again at the lease's end
    deps_.log.write(LogLevel::error, "webhook.failed", error.what());
  } catch (...) {
    deps_.log.write(LogLevel::error, "webhook.failed", "a webhook ended in an exception that is not a std::exception");
  }
}

DeliveryTask::Step DeliveryTask::beginAttempt(CallListener& listener) {
  if (isDecided()) {
    endOrPostpone(false);
    return Step::over;
  }
  // The delivery has waited for a thread, and another claim may begin while a call is under way.
  if (deps_.clock.now() + kCallTimeout > leaseEnds_) return Step::over;
  WebhookTransport* const transport = deps_.transports.find(delivery_.url);
  if (transport == nullptr) {
    recordFailure("no transport of webhook.transports serves URLs of this scheme", true);
    return Step::over;
  }
  Result<std::string> key = std::string();
  if (!retryStorage("sign", [&] { key = signingKey(); }) || stop_.stop_requested()) {
    rescheduleNow();
    return Step::over;
  }
  if (!key) {
    recordFailure(key.failure().message(), false);
    return Step::over;
  }
  call_.url = delivery_.url;
  call_.body = webhookBody(delivery_);
  call_.timeout = kCallTimeout;
  // Input and output may have 20 MB each, so both are freed before the call, which may be long.
  delivery_.job.output = std::string();
  delivery_.input = std::string();
  call_.headers = signatureHeaders(*key, delivery_.id, deps_.wall.now(), call_.body);
  return beginCall(*transport, listener);
}

// Returns true if the recorded calls decide the delivery: the process of the last call died before finishDelivery().
bool DeliveryTask::isDecided() const {
  if (delivery_.tries == 0 || delivery_.attempts.empty()) return false;
  return delivery_.tries >= retries().attempts || isDelivered(delivery_.attempts.back());
}

// Fails if the key exists and cannot be used. Throws StorageError if the storage cannot give the key.
Result<std::string> DeliveryTask::signingKey() {
  try {
    return deps_.secrets.keyOf(delivery_.job.endpoint);
  } catch (const StorageError&) {
    throw;
  } catch (const Error& error) {
    return invalid(clipped(error.what(), kReasonBytes));
  }
}

// Makes the call, or begins the call.
DeliveryTask::Step DeliveryTask::beginCall(WebhookTransport& transport, CallListener& listener) {
  listener_ = &listener;
  began_ = deps_.clock.now();
  try {
    if (transport.begin(call_, stop_, *this)) return Step::callUnderWay;
    noteEnd(transport.deliver(call_, stop_), nullptr);
  } catch (...) {
    noteEnd(DeliveryFailed{}, std::current_exception());
  }
  recordCall();
  return Step::over;
}

void DeliveryTask::noteEnd(DeliveryResult result, std::exception_ptr thrown) noexcept {
  duration_ = deps_.clock.now() - began_;
  result_ = std::move(result);
  thrown_ = std::move(thrown);
}

// The end of a call that needed no thread.
void DeliveryTask::ended(DeliveryResult result) noexcept {
  noteEnd(std::move(result), nullptr);
  listener_->callEnded();
}

void DeliveryTask::failed(std::exception_ptr thrown) noexcept {
  noteEnd(DeliveryFailed{}, std::move(thrown));
  listener_->callEnded();
}

// Records the result of the call, unless a stop has cut off the call. Throws a fault of the machine.
void DeliveryTask::recordCall() {
  call_ = WebhookCall();
  if (thrown_ && stop_.stop_requested()) return rescheduleNow();
  if (thrown_) result_ = failureOf(thrown_);
  DeliveryAttempt attempt;
  attempt.duration = duration_;
  if (auto* failed = std::get_if<DeliveryFailed>(&result_)) {
    if (stop_.stop_requested()) return rescheduleNow();
    attempt.reason = failed->reason.empty() ? "the transport gave no reason" : clipped(failed->reason, kReasonBytes);
    attempt.status = failed->status;
    attempt.reply = failed->reply.substr(0, kReplyBytes);
    end_.call = endOf(failed->status != 0, duration_);
  } else {
    attempt.status = std::get<Delivered>(result_).status;
    attempt.reply = std::get<Delivered>(result_).reply.substr(0, kReplyBytes);
    end_.call = endOf(true, duration_);
  }
  record(std::move(attempt), false);
}

// Records an attempt without a call.
void DeliveryTask::recordFailure(std::string reason, bool isLastTry) {
  DeliveryAttempt attempt;
  attempt.reason = std::move(reason);
  record(std::move(attempt), isLastTry);
}

// Stores the attempt and settles the delivery. With `isLastTry`, another attempt could not succeed.
void DeliveryTask::record(DeliveryAttempt attempt, bool isLastTry) {
  bool isLast = false;
  if (!retryStorage("record",
                    [&] { isLast = deps_.outbox.recordAttempt(delivery_.claim(), delivery_.tries + 1, attempt); })) {
    return;
  }
  if (!isLast) return;  // a replay or another claim came in between and owns the delivery
  delivery_.attempts.push_back(std::move(attempt));
  ++delivery_.tries;
  endOrPostpone(isLastTry);
}

// Ends or postpones the delivery. With `isLastTry`, another attempt could not succeed.
void DeliveryTask::endOrPostpone(bool isLastTry) {
  if (isDelivered(delivery_.attempts.back())) return finishDelivery(DeliveryState::delivered);
  const WebhookBackoff rule = retries();
  if (isLastTry || delivery_.tries >= rule.attempts) return finishDelivery(DeliveryState::abandoned);
  postpone(rule.pauseAfter(delivery_.tries));
}

void DeliveryTask::postpone(Millis delay) {
  Instant again{};
  const bool isPostponed = retryStorage("postpone", [&] {
    deps_.outbox.reschedule(delivery_.claim(), delay);
    again = deps_.clock.now() + delay;  // never earlier than the due time in the storage
  });
  if (isPostponed) end_.retryAt = again;
}

// Without memory for the step the delivery is due again at the lease's end.
void DeliveryTask::postponeUncounted(const std::exception& fault) noexcept {
  try {
    deps_.log.write(
        LogLevel::warning, "webhook.lacking",
        "the webhook of " + delivery_.job.id +
            " cannot be called for now, and no try is counted; this machine lacks something: " + fault.what());
    postpone(kMachinePause);
  } catch (...) {
    end_.retryAt.reset();
  }
}

void DeliveryTask::finishDelivery(DeliveryState state) {
  bool settled = false;
  retryStorage("finish", [&] { settled = deps_.outbox.finishDelivery(delivery_.claim(), state); });
  if (!settled || state != DeliveryState::abandoned) return;
  const std::string status = std::to_string(delivery_.attempts.back().status);
  // The log line leaves out the URL and the reason of the failure, because both may hold secrets.
  deps_.log.write(
      LogLevel::warning, "webhook.abandoned",
      "the webhook of " + delivery_.job.id + " at " + clipped(delivery_.host) + " is given up, the last status was " +
          status + "; GET /v1/webhooks?jobId= says more, POST /v1/webhooks/" + delivery_.id + "/replay sends it again");
}

// After a stop makes the delivery due at once. Without a stop the delivery waits for the end of the lease.
void DeliveryTask::rescheduleNow() {
  if (stop_.stop_requested())
    retryStorage("reschedule", [&] { deps_.outbox.reschedule(delivery_.claim(), Millis(0)); });
}

// Repeats the operation until success. Returns false on a stop or at the end of the lease, after at least one try.
bool DeliveryTask::retryStorage(const char* doing, const std::function<void()>& operation) {
  Backoff backoff(deps_.clock, stop_);
  for (;;) {
    try {
      operation();
      return true;
    } catch (const std::exception& error) {  // every exception, because the outcome of the call must not be lost
      deps_.log.write(LogLevel::error, "webhook.storage",
                      std::string("cannot ") + doing + " the webhook of " + delivery_.job.id + " yet: " + error.what());
    }
    if (!backoff.pause() || deps_.clock.now() >= leaseEnds_) return false;
  }
}

}  // namespace jobq
