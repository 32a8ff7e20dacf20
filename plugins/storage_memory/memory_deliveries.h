// The owed and settled webhooks of the memory storage, with an index for each question that is asked about them.
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
  Instant dueAt{};      // while owed
  Instant owedAt{};     // since then it is owed
  Instant settledAt{};  // afterwards
  std::uint32_t tries = 0;
  std::uint64_t claims = 0;
  std::vector<DeliveryAttempt> attempts;
};

/// The caller guards it: one mutex with the jobs, because the step that ends a job also writes here.
class Deliveries {
 public:
  /// The job has just ended.
  void owe(const Row& row, Instant now);

  /// OutboxStore::dueHosts().
  DueHosts dueHosts(Instant now, std::string_view after, std::size_t max) const;

  /// Returns the deliveries that OutboxStore::claimDue() may take, in its order.
  std::vector<DeliveryRow*> due(Instant now, std::span<const HostPlaces> hosts) const;

  /// Null when unknown, or settled for longer than kDeliveryRecordLife.
  DeliveryRow* find(std::string_view id, Instant now);

  /// Returns the owed delivery whose last claim this is, or null.
  DeliveryRow* findClaimed(const DeliveryClaim& claim);

  /// Due at `due`, and owed as before.
  void setDue(DeliveryRow& row, Instant due);
  /// Owed from now on and due at once, whatever it was.
  void setOwed(DeliveryRow& row, Instant now);
  /// Also lets go of the oldest settled ones of the endpoint beyond kMaxDeliveriesPerEndpoint.
  void settle(DeliveryRow& row, DeliveryState state, Instant now);

  /// Oldest first; of whatever endpoint, when `endpoint` is empty.
  std::vector<const DeliveryRow*> ofJob(std::string_view endpoint, std::string_view job, Instant now) const;
  /// Newest first.
  std::vector<const DeliveryRow*> ofEndpoint(std::string_view endpoint, std::size_t limit, Instant now) const;

  /// OutboxStore::owed().
  OwedDeliveries owed(Instant now, std::string_view endpoint) const;

  /// OutboxStore::abandonOwed().
  AbandonResult abandonOwed(Instant now, const OwedBounds& bounds, std::size_t max);

  /// Adds to the record of the delivery, which keeps its last kMaxAttempts.
  static void addAttempt(DeliveryRow& row, DeliveryAttempt attempt, Instant now);

  /// Drops up to `max` that have outlived their time; returns how many.
  std::size_t dropOld(Instant now, std::size_t max);

 private:
  using ByTime = std::set<std::tuple<Instant, std::uint64_t, DeliveryRow*>>;
  struct OfEndpoint {
    std::map<std::uint64_t, DeliveryRow*> all;
    ByTime owed;  // by `owedAt`
    ByTime settled;
  };
  /// An owed delivery that is beyond a bound.
  struct Surplus {
    DeliveryRow* row = nullptr;
    bool isTooOld = false;  // or one of too many
  };
  static std::vector<Surplus> surplusOf(const OfEndpoint& endpoint, Instant now, const OwedBounds& bounds,
                                        std::size_t looks);

  void leaveIndexes(DeliveryRow& row);
  void erase(DeliveryRow& row);

  std::map<std::string, DeliveryRow, std::less<>> rows_;
  std::map<EndpointId, OfEndpoint, std::less<>> endpoints_;
  std::map<std::string, ByTime, std::less<>> due_;  // owed ones by host
  ByTime settled_;
  std::uint64_t sequence_ = 0;
};

}  // namespace jobq::memory
