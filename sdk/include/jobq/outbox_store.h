// Store of owed webhooks. A delivery appears in the step that ends a job (storage.h) and holds its own snapshot of the
// job, so a delivery survives a restart, a retry and the job's expiry. Delivery is at least once. The rules for every
// store are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// An attempt to deliver, as an administrator sees the attempt.
struct DeliveryAttempt {
  Instant at{};                       ///< set by the store
  int status = 0;                     ///< HTTP status, 0 if no answer came
  Millis duration{0};                 ///< length of the call
  std::optional<std::string> reason;  ///< reason of the failure, never an empty text; nullopt if delivered
  std::string reply;                  ///< first 1 KiB of the answer's body
};

/// Returns true if the attempt delivered the webhook.
inline bool isDelivered(const DeliveryAttempt& attempt) { return !attempt.reason; }

enum class DeliveryState : std::uint8_t { owed = 0, delivered = 1, abandoned = 2 };

/// Name under which the claimant of a delivery reports. The number grows with every claim and every replay of the
/// delivery: a report with an older number is late and changes nothing.
struct DeliveryClaim {
  std::string id;  ///< Delivery::id
  std::uint64_t number = 0;
};

/// An owed call: a snapshot of the job at its end, with the data for the body of the webhook.
struct Delivery {
  std::string id;  ///< `<job id>.<attempt of the job>`: unique for each end of a job, equal in all tries
  DeliveryState state = DeliveryState::owed;
  std::string url;
  std::string host;   ///< ReceiverNames::nameOf(url) (receiver_names.h), equal for all deliveries to one receiver
  Job job;            ///< snapshot of the job at its end, without apiKeyId
  std::string input;  ///< JSON object text
  Instant dueAt{};
  std::uint32_t tries = 0;   ///< attempts recorded since the delivery was owed, or owed again by replay()
  std::uint64_t claims = 0;  ///< number of claims and replays so far, and thus the number of the last claim
  std::vector<DeliveryAttempt> attempts;  ///< the last kMaxAttempts, oldest first

  /// Returns the claim for reports about the delivery, as of this object.
  DeliveryClaim claim() const { return {id, claims}; }
};

inline constexpr std::size_t kMaxAttempts = 20;           ///< attempts in the record of a delivery
inline constexpr Millis kDeliveryRecordLife{86'400'000};  ///< 24 h after the settlement
/// Greatest number of settled deliveries of an endpoint in the store; the oldest go first.
inline constexpr std::size_t kMaxDeliveriesPerEndpoint = 1'000;

/// Greatest number of deliveries that a claim may take for one host.
struct HostPlaces {
  std::string host;  ///< Delivery::host
  std::size_t places = 0;
};

/// A page of the hosts with due deliveries.
struct DueHosts {
  std::vector<std::string> hosts;  ///< in ascending order
  std::string next;                ///< `after` of the next page; empty after the last page
};

/// Number and age of the deliveries that an endpoint owes.
struct OwedDeliveries {
  std::uint64_t count = 0;
  Millis oldestAge{0};  ///< age of the oldest delivery since its job's end or its last replay; 0 if none is owed
};

/// Bounds on the age of owed deliveries and on their number for each endpoint.
struct OwedBounds {
  Millis maxAge{0};          ///< age since the end of the job or the last replay
  std::size_t maxCount = 0;  ///< owed deliveries of one endpoint
};

/// Numbers of abandoned deliveries of an endpoint, by the bound that was exceeded.
struct AbandonedDeliveries {
  EndpointId endpoint;
  std::size_t tooOld = 0;
  std::size_t tooMany = 0;
};

/// Result of one call of abandonOwed().
struct AbandonResult {
  std::vector<AbandonedDeliveries> endpoints;  ///< endpoints with an abandoned delivery, each once
  bool more = false;                           ///< the call reached its bound: the caller repeats the call at once
};

/// Returns the reason of a delivery that was abandoned because of OwedBounds::maxAge.
inline std::string tooOldReason(const OwedBounds& bounds) {
  return "the webhook was owed for webhook.maxAge (" + std::to_string(bounds.maxAge.count() / 1'000) +
         " s) without a delivery, and is given up";
}
/// Returns the reason of a delivery that was abandoned because of OwedBounds::maxCount.
inline std::string tooManyReason(const OwedBounds& bounds) {
  return "the endpoint owed more than webhook.maxOwed (" + std::to_string(bounds.maxCount) +
         ") webhooks, and this one, the oldest that waited, is given up";
}

/// Bound on the bytes of input and output in a claim. The delivery that reaches the bound ends the claim: a delivery
/// may have 40 MB.
inline constexpr std::size_t kMaxClaimedBytes = 64UL << 20;

/// Operations on owed webhooks. The storage owns the store.
///
/// Reports (finishDelivery, reschedule, recordAttempt) name a claim. A report is late if the delivery is not owed, or
/// if the claim is not the last claim of the delivery. A late report changes nothing and returns false, except that a
/// repeated finishDelivery() returns true. After replay() or a further claim, a late report therefore neither ends nor
/// delays the delivery. The end of the lease alone does not make a claim late.
class JOBQ_VISIBLE OutboxStore : public abi::Versioned {
 public:
  virtual ~OutboxStore() = default;

  /// Examines up to `max` hosts behind `after` that are owed deliveries, in ascending order, and returns the hosts
  /// among them with a due delivery. An empty `after` begins with the first host. The time of the call grows with the
  /// number of hosts, not with the number of deliveries.
  [[nodiscard]] virtual DueHosts dueHosts(std::string_view after, std::size_t max) = 0;

  /// Claims due deliveries, up to the places of each host in `hosts`. The longest due delivery of a host comes first.
  /// The first deliveries of all hosts come before the second deliveries of any host, and the claim ends at
  /// kMaxClaimedBytes. Each claimed delivery is hidden from other callers for `lease`, in milliseconds, and due again
  /// afterwards unless settled or rescheduled. `hosts` names a host once. The deliveries of a call whose answer was
  /// lost are due again when the lease ends; the caller needs no repeated call.
  [[nodiscard]] virtual std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) = 0;

  /// Ends the delivery as `state`, delivered or abandoned. The store lists the delivery for kDeliveryRecordLife.
  /// Returns false if the report is late. Repeatable: returns true and changes nothing if the delivery is listed with
  /// `state` already and the claim is its last claim.
  virtual bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) = 0;

  /// Makes the delivery due again after `delay`, in milliseconds. Returns false if the report is late. Repeatable: a
  /// repeated call counts the delay again.
  virtual bool reschedule(const DeliveryClaim& claim, Millis delay) = 0;

  /// Adds the try `number` to the delivery's record of at most kMaxAttempts, and counts the try. Tries are numbered
  /// from 1, and the next try has the number Delivery::tries + 1. Returns true, or false if the report is late or
  /// `number` is neither the next number nor the last. Repeatable: returns true and changes nothing for the number of
  /// the last recorded try.
  virtual bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) = 0;

  /// Returns at most `limit` deliveries of a job, oldest first, with the snapshot but without input and output, the
  /// error cut by listedError(). An empty `endpoint` stands for the job's own endpoint. With an empty `job`, returns
  /// the deliveries of the endpoint, newest first, with attempts without replies; with a `state` only those in the
  /// state, and then an empty `endpoint` stands for all endpoints. The time of a call with a state grows with the
  /// number of all deliveries. A `state` has no meaning for a job.
  [[nodiscard]] virtual std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit,
                                                   std::optional<DeliveryState> state = std::nullopt) = 0;

  /// Makes the delivery owed and due at once, in any state, with zero tries; the record stays. Ends the present claim:
  /// a call under way decides nothing any more, and a further call follows. Returns false if the id is unknown.
  /// Repeatable, but for a call of the receiver in between: a repeated call demands one more.
  virtual bool replay(std::string_view id) = 0;

  /// Returns the number and the age of the endpoint's owed deliveries. The time of the call does not grow with the
  /// number of deliveries. Throws StorageError. Any thread.
  [[nodiscard]] virtual OwedDeliveries owed(std::string_view endpoint) = 0;

  /// Abandons deliveries, at most `max` of all endpoints: deliveries owed for bounds.maxAge, and the oldest deliveries
  /// of an endpoint that owes more than bounds.maxCount, down to that number. The record of each abandoned delivery
  /// gets an attempt with tooOldReason() or tooManyReason(). The status of the attempt is 0, because no call was made,
  /// and the attempt does not count as a try.
  ///
  /// Only a waiting delivery is abandoned. A delivery with a call under way, or with a postponed next try, is skipped
  /// until the delivery is due. A delivery whose last try was delivered waits for finishDelivery() only and is skipped
  /// too. The call examines the `max` oldest deliveries of an endpoint, so the time of the call is bounded for any
  /// number of owed deliveries. Returns the abandoned deliveries by endpoint. Repeatable, but for the numbers: a
  /// repeated call abandons and counts further deliveries. Throws StorageError. Any thread.
  [[nodiscard]] virtual AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) = 0;
};

}  // namespace jobq
