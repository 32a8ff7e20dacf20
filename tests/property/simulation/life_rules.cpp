#include "life_rules.h"

#include <algorithm>

#include "handler_rules.h"
#include "jobq/node_store.h"
#include "tests/support/shared_memory.h"

namespace jobq::model {

Millis LifeRules::servedNow() const { return served_ + std::min<Millis>(clock_.now() - lastBeat_, kBeatGap); }

void LifeRules::noteBeat(Life& life) {
  served_ = servedNow();
  lastBeat_ = life.lastBeat = clock_.now();
  life.served = served_;
}

void LifeRules::joined(const Holder& life) {
  if (life.epoch <= lastEpoch_) {
    findings_.note("epoch not grown: " + std::to_string(life.epoch) + " of " + life.node + " follows " +
                   std::to_string(lastEpoch_));
  }
  lastEpoch_ = life.epoch;
  for (auto& [epoch, other] : lives_) other.hasEnded = other.hasEnded || other.node == life.node;
  Life& begun = lives_[life.epoch];
  begun.node = life.node;
  begun.hasEnded = false;
  noteBeat(begun);
}

void LifeRules::lost(const LeaseRef& lease, std::uint64_t epoch) {
  ++findings_.played["lost"];
  const Life& life = lives_[epoch];
  const Millis without = servedNow() - life.served;
  if (life.hasEnded || without >= test::kLeaseLife) return;
  findings_.note("early loss: " + text(lease) + " is taken from " + life.node + " " + std::to_string(without.count()) +
                 " ms after its last beat");
}

Millis LifeRules::sinceBeat(const std::string& node) const {
  Millis since = Millis::max();
  for (const auto& [epoch, life] : lives_) {
    if (life.node == node) since = clock_.now() - life.lastBeat;  // the last life remains
  }
  return since;
}

}  // namespace jobq::model
