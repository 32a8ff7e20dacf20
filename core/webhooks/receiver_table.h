// How many deliveries may be on their way to each host at once, learnt from how the last calls there ended.
//
// Two rules keep hosts that do not answer from delaying those that do:
//  - A host begins with one place. Each answer adds one, up to kPlacesPerHost; a call without an answer takes all but
//  one
//    away until another call is answered.
//  - Hosts that did not answer their last call within kPromptAnswer have kPlacesForOthers places together, and three
//    quarters of the bytes. The rest is for hosts that answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "jobq/outbox_store.h"
#include "jobq/time.h"

namespace jobq {

/// Deliveries that are on their way at once: in all, to one host, and to all hosts together that are not known to
/// answer within kPromptAnswer.
inline constexpr std::size_t kPlaces = 64;
inline constexpr std::size_t kPlacesPerHost = 32;
inline constexpr std::size_t kPlacesPerLateHost = 8;
inline constexpr std::size_t kPlacesForOthers = 48;
inline constexpr Millis kPromptAnswer{1'000};
/// No further delivery is begun while the bodies of those in hand have so many bytes.
inline constexpr std::size_t kBytesInHand = 256UL << 20;
inline constexpr std::size_t kBytesForOthers = kBytesInHand / 4 * 3;
/// A turn so many turns ago is as good as none: names that were never seen do not go before a host that was.
inline constexpr std::uint64_t kOldTurn = 1'000;
/// Hosts that are remembered; beyond them those without a delivery in hand are forgotten.
inline constexpr std::size_t kKnownHosts = 4'096;

/// How a call ended, as far as it says something about its host.
enum class CallEnd : std::uint8_t {
  unknown,   ///< no call was made, it was cut off, or it failed at once
  answered,  ///< within kPromptAnswer, whatever the answer was
  answeredLate,
  timedOut,  ///< no answer, and that took longer than kPromptAnswer
};

/// One thread at a time.
class ReceiverTable {
 public:
  /// Chooses how many of the due deliveries of `hosts` may begin now. The places go in turns: the next one to the host
  /// with the fewest deliveries in hand, among equals to the one whose turn is the longest ago, and among hosts of
  /// which nothing is known, or whose turn was more than kOldTurn turns ago, by chance.
  std::vector<HostPlaces> placesFor(const std::vector<std::string>& hosts);

  /// A delivery to the host is in hand, its bodies have so many bytes.
  void begin(const std::string& host, std::size_t bytes);
  /// The delivery, for which begin() was called with the same values, is not in hand any more.
  void end(const std::string& host, std::size_t bytes, CallEnd how);

  /// Returns whether a host that answers could begin a delivery.
  bool hasPlaces() const noexcept { return inHand_ < kPlaces && bytes_ < kBytesInHand; }

 private:
  struct Receiver {
    std::size_t inHand = 0;
    std::size_t bytes = 0;  // of those
    std::size_t most = 1;   // that may be in hand
    bool answers = false;
    std::uint64_t lastTurn = 0;
  };

  void recordResult(Receiver& receiver, CallEnd how);
  void forgetIdle();

  std::map<std::string, Receiver> known_;
  std::size_t inHand_ = 0;
  std::size_t inHandOfOthers_ = 0;  // those to hosts that are not known to answer
  std::size_t bytes_ = 0;
  std::size_t bytesOfOthers_ = 0;
  std::uint64_t turns_ = 0;
  std::minstd_rand chance_;
};

}  // namespace jobq
