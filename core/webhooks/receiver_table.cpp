#include "core/webhooks/receiver_table.h"

#include <algorithm>
#include <utility>

namespace jobq {
namespace {

/// A host asking for places in one call of placesFor().
struct Candidate {
  const std::string* host = nullptr;
  std::size_t inUse = 0;
  std::size_t most = 1;
  bool answers = false;
  std::uint64_t lastTurn = 0;
  std::size_t places = 0;
};

}  // namespace

std::vector<HostPlaces> ReceiverTable::placesFor(const std::vector<std::string>& hosts) {
  std::vector<Candidate> candidates;
  candidates.reserve(hosts.size());
  for (const std::string& host : hosts) {
    Candidate candidate{&host};
    const std::uint64_t oldest = turns_ - std::min(turns_, kOldTurn);
    candidate.lastTurn = oldest;
    if (const auto at = known_.find(host); at != known_.end()) {
      candidate.inUse = at->second.inUse;
      candidate.most = std::min(at->second.most, partOf(kPlacesPerHost));
      candidate.answers = at->second.answers;
      candidate.lastTurn = std::max(at->second.lastTurn, oldest);
    }
    if (candidate.inUse < candidate.most) candidates.push_back(candidate);
  }
  const std::size_t first = candidates.empty() ? 0 : chance_() % candidates.size();
  std::size_t forOthers =
      bytesOfOthers_ >= kBytesForOthers ? 0 : kPlacesForOthers - std::min(inUseByOthers_, kPlacesForOthers);
  for (std::size_t free = hasPlaces() ? kPlaces - inUse_ : 0; free > 0; --free) {
    Candidate* next = nullptr;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate& each = candidates[(first + i) % candidates.size()];
      if (each.inUse + each.places >= each.most || (!each.answers && forOthers == 0)) continue;
      const auto turn = [](const Candidate& one) { return std::pair(one.inUse + one.places, one.lastTurn); };
      if (next == nullptr || turn(each) < turn(*next)) next = &each;
    }
    if (next == nullptr) break;
    ++next->places;
    if (!next->answers) --forOthers;
  }
  std::vector<HostPlaces> shared;
  for (const Candidate& each : candidates) {
    if (each.places > 0) shared.push_back({*each.host, each.places});
  }
  return shared;
}

void ReceiverTable::begin(const std::string& host, std::size_t bytes) {
  if (known_.size() >= kKnownHosts && !known_.contains(host)) forgetIdle();
  Receiver& receiver = known_[host];
  receiver.lastTurn = ++turns_;
  ++receiver.inUse;
  receiver.bytes += bytes;
  ++inUse_;
  bytes_ += bytes;
  if (receiver.answers) return;
  ++inUseByOthers_;
  bytesOfOthers_ += bytes;
}

void ReceiverTable::end(const std::string& host, std::size_t bytes, CallEnd how) {
  Receiver& receiver = known_[host];
  --receiver.inUse;
  receiver.bytes -= bytes;
  --inUse_;
  bytes_ -= bytes;
  if (!receiver.answers) {
    --inUseByOthers_;
    bytesOfOthers_ -= bytes;
  }
  recordResult(receiver, how);
}

void ReceiverTable::recordResult(Receiver& receiver, CallEnd how) {
  if (how == CallEnd::unknown) return;
  const bool answered = receiver.answers;
  receiver.answers = how == CallEnd::answered;
  switch (how) {
    case CallEnd::answered: receiver.most = std::min(receiver.most + 1, partOf(kPlacesPerHost)); break;
    case CallEnd::answeredLate: receiver.most = std::min(receiver.most + 1, partOf(kPlacesPerLateHost)); break;
    default: receiver.most = 1;
  }
  if (receiver.answers == answered) return;
  // Running deliveries of the host change sides with the host; the new side may exceed its part until the deliveries
  // end.
  if (answered) {
    inUseByOthers_ += receiver.inUse;
    bytesOfOthers_ += receiver.bytes;
  } else {
    inUseByOthers_ -= receiver.inUse;
    bytesOfOthers_ -= receiver.bytes;
  }
}

void ReceiverTable::forgetIdle() {
  std::erase_if(known_, [](const auto& each) { return each.second.inUse == 0; });
}

}  // namespace jobq
