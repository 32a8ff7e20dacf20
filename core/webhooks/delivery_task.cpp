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

}  // namespace

DeliveryTask::DeliveryTask(const Deps& deps, Delivery delivery, std::stop_token stop)
    : deps_(deps),
      delivery_(std::move(delivery)),
      stop_(std::move(stop)),
      leaseEnds_(deps_.clock.now() + kDeliveryLease) {}

std::optional<Instant> DeliveryTask::run() noexcept {
  try {
    return tryOnce();
  } catch (const std::bad_alloc& error) {
    return postponeUncounted(error);
  } catch (const std::system_error& error) {  // of deliver(), or a thread cannot start
    return postponeUncounted(error);
  } catch (const std::exception& error) {  // due again at the lease's end
    deps_.log.write(LogLevel::error, "webhook.failed", error.what());
    return std::nullopt;
  }
}

std::optional<Instant> DeliveryTask::tryOnce() {
  if (isDecided()) return conclude(false);
  auto attempt = call();
  if (!attempt) {
    rescheduleNow();
    return std::nullopt;
  }
  bool isLast = false;
  const auto record = [&] {
    isLast = deps_.outbox.recordAttempt(delivery_.claim(), delivery_.tries + 1, attempt->record);
  };
  if (!retryStorage("record", record)) return std::nullopt;
  if (!isLast) return std::nullopt;  // a replay or another claim came in between and owns the delivery
  delivery_.attempts.push_back(std::move(attempt->record));
  ++delivery_.tries;
  return conclude(attempt->last);
}

// Returns true if the recorded calls decide the delivery: the process of the last call died before finishDelivery().
bool DeliveryTask::isDecided() const {
  if (delivery_.tries == 0 || delivery_.attempts.empty()) return false;
  return delivery_.tries >= kMaxTries || isDelivered(delivery_.attempts.back());
}

// Returns nullopt if the call could not be made, or was cut off by a stop.
std::optional<DeliveryTask::Attempt> DeliveryTask::call() {
  Attempt attempt;
  WebhookTransport* transport = deps_.transports.find(delivery_.url);
  if (transport == nullptr) {
    attempt.record.reason = "no transport of webhook.transports serves URLs of this scheme";
    attempt.last = true;
    return attempt;
  }
  Result<std::string> key = std::string();
  if (!retryStorage("sign", [&] { key = signingKey(); }) || stop_.stop_requested()) return std::nullopt;
  if (!key) {
    attempt.record.reason = key.failure().message();
    return attempt;
  }
  WebhookCall call;
  call.url = delivery_.url;
  call.body = webhookBody(delivery_);
  call.timeout = kCallTimeout;
  // Input and output may have 20 MB each, so both are freed before the call, which may be long.
  delivery_.job.output = std::string();
  delivery_.input = std::string();
  const Instant began = deps_.clock.now();
  call.headers = signatureHeaders(*key, delivery_.id, deps_.wall.now(), call.body);
  DeliveryResult result = deliver(*transport, call);
  attempt.record.duration = deps_.clock.now() - began;
  if (auto* failed = std::get_if<DeliveryFailed>(&result)) {
    if (stop_.stop_requested()) return std::nullopt;
    attempt.record.reason =
        failed->reason.empty() ? "the transport gave no reason" : clipped(failed->reason, kReasonBytes);
    attempt.record.status = failed->status;
    attempt.record.reply = failed->reply.substr(0, kReplyBytes);
    callEnd_ = endOf(failed->status != 0, attempt.record.duration);
  } else {
    attempt.record.status = std::get<Delivered>(result).status;
    attempt.record.reply = std::get<Delivered>(result).reply.substr(0, kReplyBytes);
    callEnd_ = endOf(true, attempt.record.duration);
  }
  return attempt;
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

// Turns every exception of a transport into a failed attempt, except a fault of the machine.
DeliveryResult DeliveryTask::deliver(WebhookTransport& transport, const WebhookCall& call) const {
  try {
    return transport.deliver(call, stop_);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error& error) {
    if (isMachineFault(error.code().value())) throw;
    return DeliveryFailed{error.what(), 0, ""};
  } catch (const std::exception& error) {
    return DeliveryFailed{error.what(), 0, ""};
  } catch (...) {
    return DeliveryFailed{"the transport threw an exception that is not a std::exception", 0, ""};
  }
}

// Settles or reschedules the delivery. With `last`, another attempt could not succeed.
std::optional<Instant> DeliveryTask::conclude(bool last) {
  if (isDelivered(delivery_.attempts.back())) {
    finishDelivery(DeliveryState::delivered);
    return std::nullopt;
  }
  if (last || delivery_.tries >= kMaxTries) {
    finishDelivery(DeliveryState::abandoned);
    return std::nullopt;
  }
  return postpone(kRetryDelay);
}

std::optional<Instant> DeliveryTask::postpone(Millis delay) {
  Instant again{};
  const bool isPostponed = retryStorage("postpone", [&] {
    deps_.outbox.reschedule(delivery_.claim(), delay);
    again = deps_.clock.now() + delay;  // never earlier than the due time in the storage
  });
  return isPostponed ? std::optional(again) : std::nullopt;
}

// Without memory for the step the delivery is due again at the lease's end.
std::optional<Instant> DeliveryTask::postponeUncounted(const std::exception& fault) noexcept {
  try {
    deps_.log.write(
        LogLevel::warning, "webhook.lacking",
        "the webhook of " + delivery_.job.id +
            " cannot be called for now, and no try is counted; this machine lacks something: " + fault.what());
    return postpone(kMachinePause);
  } catch (const std::exception&) {
    return std::nullopt;
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
