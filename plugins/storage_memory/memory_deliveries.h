// The owed and settled webhooks of the memory storage, with an index for each kind of search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "jobq/receiver_names.h"
#include "jobq/time.h"
#include "memory_rows.h"

namespace jobq::memory {

struct DeliveryRow {
  std::string id;
  std::uint64_t sequence = 0;
  DeliveryState state = DeliveryState::owed;
  std::shared_ptr<const JobSpec> spec;
  std::string host;
  Found snapshot;
  Instant dueAt{};      // meaningful while owed
  Instant owedAt{};     // the delivery has been owed since this moment
  Instant settledAt{};  // meaningful once settled
  std::uint32_t tries = 0;
  std::uint64_t claims = 0;
  std::vector<DeliveryAttempt> attempts;
};

/// All deliveries. The caller guards the object by the mutex of the jobs, because the step ending a job also writes
/// here.
class Deliveries {
 public:
  /// `names` outlives the object.
  explicit Deliveries(const ReceiverNames& names) : names_(names) {}

  /// Adds the owed webhook of a job that has just ended.
  void owe(const Row& row, Instant now);

  /// Implements OutboxStore::dueHosts().
  DueHosts dueHosts(Instant now, std::string_view after, std::size_t max) const;

  /// Returns the deliveries for OutboxStore::claimDue(), in the order of claiming.
  std::vector<DeliveryRow*> due(Instant now, std::span<const HostPlaces> hosts) const;

  /// Returns null if the id is unknown or the delivery was settled more than kDeliveryRecordLife ago.
  DeliveryRow* find(std::string_view id, Instant now);

  /// Returns the owed delivery whose last claim is `claim`, or null.
  DeliveryRow* findClaimed(const DeliveryClaim& claim);

  /// Returns whether the delivery is listed as ended in `state`, and `claim` is its last claim.
  bool hasEnded(const DeliveryClaim& claim, DeliveryState state, Instant now);

  /// Makes the owed delivery due at `due`.
  void setDue(DeliveryRow& row, Instant due);
  /// Makes the delivery owed from now on and due at once, in any former state.
  void setOwed(DeliveryRow& row, Instant now);
  /// Ends the delivery as `state`, and drops the oldest settled deliveries of the endpoint beyond
  /// kMaxDeliveriesPerEndpoint.
  void finishDelivery(DeliveryRow& row, DeliveryState state, Instant now);

  /// Returns the deliveries of the job, oldest first. An empty `endpoint` stands for any endpoint.
  std::vector<const DeliveryRow*> ofJob(std::string_view endpoint, std::string_view job, Instant now) const;
  /// Returns up to `limit` deliveries of the endpoint, newest first.
  std::vector<const DeliveryRow*> ofEndpoint(std::string_view endpoint, std::size_t limit, Instant now) const;
  /// Returns the deliveries in the state, newest first. An empty `endpoint` stands for any endpoint.
  std::vector<const DeliveryRow*> ofState(std::string_view endpoint, DeliveryState state, Instant now) const;

  /// Implements OutboxStore::owed().
  OwedDeliveries owed(Instant now, std::string_view endpoint) const;

  /// Implements OutboxStore::abandonOwed().
  AbandonResult abandonOwed(Instant now, const OwedBounds& bounds, std::size_t max);

  /// Adds an attempt to the record of the delivery. The record keeps the last kMaxAttempts attempts.
  static void addAttempt(DeliveryRow& row, DeliveryAttempt attempt, Instant now);

  /// Drops up to `max` settled deliveries older than kDeliveryRecordLife. Returns the number of dropped deliveries.
  std::size_t dropOld(Instant now, std::size_t max);

 private:
  using ByTime = std::set<std::tuple<Instant, std::uint64_t, DeliveryRow*>>;
  struct OfEndpoint {
    std::map<std::uint64_t, DeliveryRow*> all;
    ByTime owed;  // by `owedAt`
    ByTime settled;
  };
  /// An owed delivery beyond a bound.
  struct Surplus {
    DeliveryRow* row = nullptr;
    bool isTooOld = false;  // too old; otherwise surplus by the number
  };
  static std::vector<Surplus> surplusOf(const OfEndpoint& endpoint, Instant now, const OwedBounds& bounds,
                                        std::size_t looks);

  void leaveIndexes(DeliveryRow& row);
  void erase(DeliveryRow& row);

  const ReceiverNames& names_;
  std::map<std::string, DeliveryRow, std::less<>> rows_;
  std::map<EndpointId, OfEndpoint, std::less<>> endpoints_;
  std::map<std::string, ByTime, std::less<>> due_;  // owed deliveries by host
  ByTime settled_;
  std::uint64_t sequence_ = 0;
};

}  // namespace jobq::memory
