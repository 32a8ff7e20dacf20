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
  std::vector<DeliveryAttempt> attempts;  ///< all of them, oldest first
};

inline constexpr Millis kDeliveryRecordLife{86'400'000};
inline constexpr std::size_t kMaxDeliveriesPerEndpoint = 1'000;  ///< settled ones; the oldest go first

/// One claim ends with the delivery whose input and output make its bytes as many: a delivery may have 40 MB.
inline constexpr std::size_t kMaxClaimedBytes = 64UL << 20;

class JOBQ_VISIBLE OutboxStore : public abi::Versioned {
 public:
  virtual ~OutboxStore() = default;

  /// Up to `max` (and kMaxClaimedBytes) owed deliveries that are due, oldest first; each is hidden from other callers
  /// for `lease`, then due again unless it was settled or rescheduled. Those to `exceptHosts` are passed over, and
  /// however many they are, the call takes no longer for it.
  [[nodiscard]] virtual std::vector<Delivery> claimDue(std::size_t max, Millis lease,
                                                       std::span<const std::string> exceptHosts) = 0;

  /// Ends an owed delivery: delivered or abandoned. It stays listed for kDeliveryRecordLife. False: not owed.
  virtual bool settle(std::string_view id, DeliveryState state) = 0;

  /// Due again after `delay`. False: not owed.
  virtual bool reschedule(std::string_view id, Millis delay) = 0;

  /// Adds to the delivery's record and to its tries. False: unknown id.
  virtual bool recordAttempt(std::string_view id, DeliveryAttempt attempt) = 0;

  /// A job's deliveries, oldest first, with the snapshot but without input and output; an empty `endpoint` means
  /// whatever the job's endpoint is. An endpoint's, when `job` is empty, newest first.
  [[nodiscard]] virtual std::vector<Delivery> list(std::string_view endpoint, std::string_view job,
                                                   std::size_t limit) = 0;

  /// Owed and due at once, whatever its state, with no tries; its record stays. False: unknown id.
  virtual bool replay(std::string_view id) = 0;
};

}  // namespace jobq
