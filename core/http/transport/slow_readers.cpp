#include "core/http/transport/slow_readers.h"

#include <algorithm>
#include <tuple>

#include "core/http/transport/byte_stream.h"

namespace jobq {
namespace {

/// The pace of a reader is judged after so long.
constexpr std::chrono::milliseconds kTrial{1'000};

/// The share of an address, and of all clients without a key together: a quarter.
constexpr std::size_t kShare = 4;

enum class Activity { stalled, reads, isNew };

}  // namespace

SlowReaders::SlowReaders(std::size_t most, const TimeSource& time) : most_(most), time_(time) {
  entries_.reserve(most);
}

SlowReaders::Place SlowReaders::enter(const AnswerReader& reader) noexcept {
  const Lock lock(mutex_);
  if (!hasRoom(reader.hasKey)) endOne(reader.hasKey);
  if (!hasRoom(reader.hasKey)) return {};
  entries_.push_back({.number = ++last_,
                      .stream = &reader.stream,
                      .address = reader.address,
                      .hasKey = reader.hasKey,
                      .begin = time_.steady(),
                      .takenAtBegin = reader.stream.bytesTaken()});
  return Place(*this, last_);
}

std::size_t SlowReaders::taken() const {
  const Lock lock(mutex_);
  return entries_.size();
}

bool SlowReaders::hasRoom(bool withKey) const {
  if (entries_.size() >= most_) return false;
  const auto isKeyless = [](const Entry& entry) { return !entry.hasKey; };
  const auto keyless = static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), isKeyless));
  return withKey || keyless < most_ / kShare;
}

bool SlowReaders::isOfLarge(const Entry& entry, const Entries& all, std::size_t most) {
  const auto isHere = [&entry](const Entry& other) { return other.address == entry.address; };
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), isHere)) > most / kShare;
}

// Ends the connection that the class comment names.
void SlowReaders::endOne(bool withKey) {
  const Moment now = time_.steady();
  auto ended = entries_.end();
  std::tuple<Activity, bool, std::uint64_t, std::uint64_t> lowest;
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->hasKey && !withKey) continue;
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - at->begin);
    const std::uint64_t read = at->stream->bytesTaken() - at->takenAtBegin;
    const std::uint64_t pace = read * 1'000 / static_cast<std::uint64_t>(std::max(age, kTrial).count());
    const Activity shown = pace < kDemandedPace ? Activity::stalled : Activity::reads;
    const Activity activity = age < kTrial ? Activity::isNew : shown;
    const bool isBeyondShare = activity != Activity::stalled && isOfLarge(*at, entries_, most_);
    const std::tuple rank(activity, !isBeyondShare, pace, at->number);
    if (ended != entries_.end() && lowest < rank) continue;
    ended = at;
    lowest = rank;
  }
  if (ended == entries_.end()) return;
  ended->stream->shutDown();
  entries_.erase(ended);
}

void SlowReaders::leave(std::uint64_t number) noexcept {
  const Lock lock(mutex_);
  std::erase_if(entries_, [number](const Entry& entry) { return entry.number == number; });
}

}  // namespace jobq
