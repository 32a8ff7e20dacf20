// Storage, face 4: webhooks that are owed. Rows appear in the step that makes a job terminal (storage.h) and hold their
// own snapshot, so that they survive a restart, a retry and the job's expiry. Delivery is at least once.
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

/// One attempt to deliver, as an admin sees it.
struct DeliveryAttempt {
  Instant at{};    ///< set by the store
  int status = 0;  ///< HTTP status, 0 when no answer came
  Millis duration{0};
  std::string reason;  ///< why it failed; empty when delivered
  std::string reply;   ///< first 1 KiB of the answer
};

enum class DeliveryState : std::uint8_t { owed = 0, delivered = 1, abandoned = 2 };

/// A delivery as one caller claimed it. The number grows with every claim and every replay of the delivery, so a report
/// that carries an older number is known to be late, and changes nothing.
struct DeliveryClaim {
  std::string id;  ///< Delivery::id
  std::uint64_t number = 0;
};

/// The owed call: the job as it was when it ended, with what the webhook's body needs.
struct Delivery {
  std::string id;  ///< `<job id>.<attempt>`: the same in all attempts, unique for each end of a job
  DeliveryState state = DeliveryState::owed;
  std::string url;
  std::string host;   ///< hostOf(url) (url_host.h): deliveries to one receiver have the same
  Job job;            ///< snapshot
  std::string input;  ///< JSON object text
  Instant dueAt{};
  std::uint32_t tries = 0;                ///< attempts recorded since it was owed, or owed again by replay()
  std::uint64_t claims = 0;               ///< how often it was claimed or replayed: the number of its last claim
  std::vector<DeliveryAttempt> attempts;  ///< the last kMaxAttempts, oldest first

  /// Returns what the reports of the present claim carry.
  DeliveryClaim claim() const { return {id, claims}; }
};

inline constexpr std::size_t kMaxAttempts = 20;  ///< that a delivery's record keeps
inline constexpr Millis kDeliveryRecordLife{86'400'000};
inline constexpr std::size_t kMaxDeliveriesPerEndpoint = 1'000;  ///< settled ones; the oldest go first

/// How many deliveries a claim may take of those that are owed to one host.
struct HostPlaces {
  std::string host;  ///< Delivery::host
  std::size_t places = 0;
};

/// One page of the hosts to which something is due.
struct DueHosts {
  std::vector<std::string> hosts;  ///< in ascending order
  std::string next;                ///< `after` of the next page; empty when this was the last one
};

/// What an endpoint owes. Since minor 2.
struct OwedDeliveries {
  std::uint64_t count = 0;
  Millis oldestAge{0};  ///< of the oldest one, since its job's end or its last replay; 0 when none is owed
};

/// How old owed deliveries may become, and how many one endpoint may have. Since minor 2.
struct OwedBounds {
  Millis maxAge{0};
  std::size_t maxCount = 0;
};

/// How many deliveries of an endpoint were abandoned, and beyond which bound they were. Since minor 2.
struct AbandonedDeliveries {
  EndpointId endpoint;
  std::size_t tooOld = 0;
  std::size_t tooMany = 0;
};

/// What one call of abandonOwed() did. Since minor 2.
struct AbandonResult {
  std::vector<AbandonedDeliveries> endpoints;  ///< those of which a delivery was abandoned, each once
  bool more = false;                           ///< the call's bound was reached: call again at once
};

/// The reason of a delivery that was abandoned because of OwedBounds::maxAge.
inline std::string tooOldReason(const OwedBounds& bounds) {
  return "the webhook was owed for webhook.maxAge (" + std::to_string(bounds.maxAge.count() / 1'000) +
         " s) without a delivery, and is given up";
}
/// The reason of a delivery that was abandoned because of OwedBounds::maxCount.
inline std::string tooManyReason(const OwedBounds& bounds) {
  return "the endpoint owed more than webhook.maxOwed (" + std::to_string(bounds.maxCount) +
         ") webhooks, and this one, the oldest that waited, is given up";
}

/// One claim ends with the delivery whose input and output make its bytes as many: a delivery may have 40 MB.
inline constexpr std::size_t kMaxClaimedBytes = 64UL << 20;

/// Reports (settle, reschedule, recordAttempt) name a claim. They change nothing and return false unless the delivery
/// is owed and the claim is its last one: after replay(), or after another caller's claim, a late report neither ends
/// nor delays what is owed anew. A lease that has ended does not make a claim late by itself.
class JOBQ_VISIBLE OutboxStore : public abi::Versioned {
 public:
  virtual ~OutboxStore() = default;

  /// Looks at up to `max` hosts behind `after` to which deliveries are owed, in ascending order, and returns those of
  /// them to which one is due. The time of the call grows with the number of hosts, not with that of deliveries.
  [[nodiscard]] virtual DueHosts dueHosts(std::string_view after, std::size_t max) = 0;

  /// Claims due deliveries: of each host in `hosts` up to its places, those that are due the longest first. The first
  /// ones of all hosts come before the second ones of any, and the claim ends at kMaxClaimedBytes. Each is hidden from
  /// other callers for `lease`, then due again unless it was settled or rescheduled. A host is named once.
  [[nodiscard]] virtual std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) = 0;

  /// Ends the delivery: delivered or abandoned. It stays listed for kDeliveryRecordLife.
  virtual bool settle(const DeliveryClaim& claim, DeliveryState state) = 0;

  /// Makes the delivery due again after `delay`.
  virtual bool reschedule(const DeliveryClaim& claim, Millis delay) = 0;

  /// Adds to the delivery's record, which keeps its last kMaxAttempts, and to its tries.
  virtual bool recordAttempt(const DeliveryClaim& claim, DeliveryAttempt attempt) = 0;

  /// Returns a job's deliveries, oldest first, with the snapshot but without input and output, its error cut by
  /// listedError(); an empty `endpoint` means whatever the job's endpoint is. If `job` is empty, an endpoint's, newest
  /// first, whose attempts are without replies.
  [[nodiscard]] virtual std::vector<Delivery> list(std::string_view endpoint, std::string_view job,
                                                   std::size_t limit) = 0;

  /// Makes the delivery owed and due at once, whatever its state, with no tries; its record stays. Ends the present
  /// claim: a call that is under way decides nothing any more, and another one follows. Returns false if the id is
  /// unknown.
  virtual bool replay(std::string_view id) = 0;

  /// Returns what the endpoint owes. The time of the call does not grow with the number of deliveries. Throws
  /// StorageError. Any thread.
  [[nodiscard]] virtual OwedDeliveries owed(std::string_view endpoint) = 0;

  /// Abandons deliveries, at most `max` of all endpoints: those owed for bounds.maxAge, and of an endpoint that owes
  /// more than bounds.maxCount the surplus, the oldest first. The record of each gets an attempt without a call (status
  /// 0), not counted as a try, with tooOldReason() or tooManyReason().
  ///
  /// Only a waiting delivery is abandoned. A delivery with a call under way, or with a postponed next try, is passed
  /// over until the delivery is due; so is one whose last try was delivered and only has to be settled. The call
  /// examines the `max` oldest deliveries of an endpoint, so the time of the call is bounded however much is owed.
  /// Throws StorageError. Any thread.
  [[nodiscard]] virtual AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) = 0;
};

}  // namespace jobq
