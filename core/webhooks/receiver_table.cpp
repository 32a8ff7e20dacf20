#include "core/webhooks/receiver_table.h"

#include <algorithm>
#include <tuple>

namespace jobq {
namespace {

/// A host asking for places in one call of placesFor().
struct Candidate {
  const std::string* host = nullptr;
  std::size_t running = 0;  // deliveries in hand, with the places given so far
  std::size_t most = 1;
  bool answers = false;
  std::uint64_t lastTurn = 0;
  std::size_t number = 0;  // decides between equals
  std::size_t places = 0;
};

/// Returns whether the next place goes to `other` before `one`.
bool comesAfter(const Candidate* one, const Candidate* other) {
  const auto turn = [](const Candidate& each) { return std::tie(each.running, each.lastTurn, each.number); };
  return turn(*one) > turn(*other);
}

}  // namespace

std::vector<HostPlaces> ReceiverTable::placesFor(const std::vector<std::string>& hosts) {
  std::vector<Candidate> candidates;
  candidates.reserve(hosts.size());
  const std::uint64_t oldest = turns_ - std::min(turns_, kOldTurn);
  for (const std::string& host : hosts) {
    Candidate candidate{.host = &host, .lastTurn = oldest};
    if (const auto at = known_.find(host); at != known_.end()) {
      candidate.running = at->second.inUse;
      candidate.most = std::min(at->second.most, partOf(kPlacesPerHost));
      candidate.answers = at->second.answers;
      candidate.lastTurn = std::max(at->second.lastTurn, oldest);
    }
    if (candidate.running < candidate.most) candidates.push_back(candidate);
  }
  const std::size_t first = candidates.empty() ? 0 : chance_() % candidates.size();
  std::vector<Candidate*> waiting;  // a heap with the next host at the front
  waiting.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].number = (i + candidates.size() - first) % candidates.size();
    waiting.push_back(&candidates[i]);
  }
  std::make_heap(waiting.begin(), waiting.end(), comesAfter);
  std::size_t free = hasPlaces() ? places_ - inUse_ : 0;
  const std::size_t mostOthers = std::min(kPlacesForOthers, mostTogether_);
  std::size_t forOthers = bytesOfOthers_ >= kBytesForOthers ? 0 : mostOthers - std::min(inUseByOthers_, mostOthers);
  while (free > 0 && !waiting.empty()) {
    std::pop_heap(waiting.begin(), waiting.end(), comesAfter);
    Candidate& next = *waiting.back();
    waiting.pop_back();
    if (!next.answers && forOthers == 0) continue;
    if (!next.answers) --forOthers;
    --free;
    ++next.places;
    if (++next.running == next.most) continue;
    waiting.push_back(&next);
    std::push_heap(waiting.begin(), waiting.end(), comesAfter);
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
