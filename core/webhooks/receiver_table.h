// Number of concurrent deliveries to each host, learnt from the results of the last calls.
//
// Two rules keep unresponsive hosts from delaying responsive hosts:
//  - A host begins with one place. Each answer adds one place, up to kPlacesPerHost; a call without an answer
//    leaves one place until a later call is answered.
//  - Hosts without an answer to the last call within kPromptAnswer share kPlacesForOthers places and three quarters of
//    the bytes. The remainder is kept for responsive hosts.
//
// Several nodes on one storage call the same hosts: each node has an equal part of the places of a host, at least one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

// Greatest numbers of concurrent deliveries.
inline constexpr std::size_t kPlaces = 512;           ///< deliveries of this node to all hosts
inline constexpr std::size_t kPlacesPerHost = 384;    ///< deliveries of all nodes to one host
inline constexpr std::size_t kPlacesPerLateHost = 8;  ///< deliveries to one host that answers late
/// Deliveries of this node to all hosts together that have no known answer within kPromptAnswer.
inline constexpr std::size_t kPlacesForOthers = 64;
/// Longest time until an answer that is not late.
inline constexpr Millis kPromptAnswer{1'000};
/// Bound on the bytes in the bodies of running deliveries; at the bound no further delivery starts.
inline constexpr std::size_t kBytesInHand = 256UL << 20;
inline constexpr std::size_t kBytesForOthers = kBytesInHand / 4 * 3;
/// Age in turns at which a turn counts like no turn, so that new names do not go before known hosts.
inline constexpr std::uint64_t kOldTurn = 1'000;
/// Number of remembered hosts; above, hosts without a running delivery are forgotten.
inline constexpr std::size_t kKnownHosts = 4'096;

/// End of a call, as far as the end says something about the host.
enum class CallEnd : std::uint8_t {
  unknown,   ///< no call was made, or the call was cut off or failed at once
  answered,  ///< any answer within kPromptAnswer
  answeredLate,
  timedOut,  ///< no answer after more than kPromptAnswer
};

/// One thread at a time.
class ReceiverTable {
 public:
  /// `places`: bound on the concurrent deliveries below kPlaces. Three quarters of them are the most for a host, and
  /// for the hosts without a known answer.
  explicit ReceiverTable(std::size_t places = kPlaces)
      : places_(std::clamp<std::size_t>(places, 1, kPlaces)),
        mostTogether_(std::max<std::size_t>(places_ / 4 * 3, 1)) {}

  /// Chooses how many due deliveries of `hosts` may start now. The places go in turns: the next place goes to the host
  /// with the fewest running deliveries, among equals to the host with the oldest turn, and by chance among unknown
  /// hosts and hosts with a turn more than kOldTurn turns ago.
  std::vector<HostPlaces> placesFor(const std::vector<std::string>& hosts);

  /// Counts a started delivery to the host; `bytes` is the size of its bodies.
  void begin(const std::string& host, std::size_t bytes);
  /// Ends a delivery for which begin() was called with the same values.
  void end(const std::string& host, std::size_t bytes, CallEnd how);

  /// Sets the number of living nodes, at least 1.
  void setNodes(std::uint32_t nodes) noexcept { nodes_ = nodes; }

  /// Returns whether a responsive host could start a delivery.
  bool hasPlaces() const noexcept { return inUse_ < places_ && bytes_ < kBytesInHand; }

 private:
  struct Receiver {
    std::size_t inUse = 0;
    std::size_t bytes = 0;  // bytes of the running deliveries
    std::size_t most = 1;   // most running deliveries
    bool answers = false;
    std::uint64_t lastTurn = 0;
  };

  /// Returns the part of this node in `places` of a host.
  std::size_t partOf(std::size_t places) const noexcept {
    return std::max<std::size_t>(std::min(places, mostTogether_) / nodes_, 1);
  }
  void recordResult(Receiver& receiver, CallEnd how);
  void forgetIdle();

  const std::size_t places_;
  const std::size_t mostTogether_;
  std::map<std::string, Receiver> known_;
  std::size_t inUse_ = 0;
  std::size_t inUseByOthers_ = 0;  // running deliveries to hosts not known to answer
  std::size_t bytes_ = 0;
  std::size_t bytesOfOthers_ = 0;
  std::uint64_t turns_ = 0;
  std::uint32_t nodes_ = 1;
  std::minstd_rand chance_;
};

}  // namespace jobq
