// The courier's threads: who has a delivery in hand, and how many of them serve the same host.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "jobq/mutex.h"
#include "jobq/outbox_store.h"

namespace jobq {

/// Deliveries that are on their way at once, and how many of them may go to one host (decisions.md, "Webhooks").
inline constexpr std::size_t kCouriers = 64;
inline constexpr std::size_t kCouriersPerHost = 8;
/// No further one is begun while the bodies of those in hand have so many bytes.
inline constexpr std::size_t kCouriersBytes = 256UL << 20;

/// Threads are started when a delivery finds none idle, and stay until stop().
class CourierCrew {
 public:
  /// `work` runs on a courier's thread and throws nothing; `freed` is called afterwards, when the place is free again.
  CourierCrew(std::function<void(Delivery)> work, std::function<void()> freed)
      : work_(std::move(work)), freed_(std::move(freed)) {}
  ~CourierCrew() { (void)stop(); }

  struct Room {
    std::size_t deliveries = 0;          ///< so many can be given, whatever their hosts are
    std::vector<std::string> busyHosts;  ///< but these, which have all the couriers that a host may have
  };
  /// For the thread that gives: nobody else makes the room smaller.
  Room room() const;

  /// Throws std::system_error when no thread can be started for it, and none is there that will come to it.
  void give(Delivery delivery);

  /// No delivery is begun any more. Blocks until every thread has ended; returns those that were not begun.
  [[nodiscard]] std::vector<Delivery> stop();

 private:
  using Hosts = std::map<std::string, std::size_t>;
  struct Given {
    Delivery delivery;
    Hosts::iterator host;
    std::size_t bytes = 0;
  };

  void live();
  void leave(const Given& given) JOBQ_REQUIRES(mutex_);

  const std::function<void(Delivery)> work_;
  const std::function<void()> freed_;

  mutable Mutex mutex_;
  Condition given_;
  std::deque<Given> inbox_ JOBQ_GUARDED_BY(mutex_);
  Hosts byHost_ JOBQ_GUARDED_BY(mutex_);            // how many are in hand or in the inbox
  std::size_t inHand_ JOBQ_GUARDED_BY(mutex_) = 0;  // all of those
  std::size_t bytes_ JOBQ_GUARDED_BY(mutex_) = 0;   // of their bodies
  std::size_t idle_ JOBQ_GUARDED_BY(mutex_) = 0;    // threads
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
