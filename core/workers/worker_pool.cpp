#include "core/workers/worker_pool.h"

#include <algorithm>

namespace jobq {
namespace {

constexpr Millis kFirstBackoff{1'000};
constexpr Millis kLongestBackoff{30'000};

}  // namespace

std::string_view nameOf(Duty duty) noexcept {
  switch (duty) {
    case Duty::starting: return "starting";
    case Duty::idle:
    case Duty::reserved: return "idle";
    case Duty::busy: return "running";
    case Duty::stuck: return "stuck";
    case Duty::leaving: return "leaving";
  }
  return "";
}

std::size_t Crew::count(Duty duty) const {
  return static_cast<std::size_t>(
      std::count_if(members.begin(), members.end(), [duty](const auto& m) { return m.second.duty == duty; }));
}

std::size_t Crew::slots() const {
  const std::size_t replaced = std::min<std::size_t>(count(Duty::stuck), endpoint->maxStuck);
  return members.size() - count(Duty::leaving) - replaced;
}

ReleasePtr Crew::target() const {
  if (retiring) return nullptr;
  return halted ? proven : endpoint->release;
}

bool Crew::isOutdated(const Member& member) const {
  return member.duty != Duty::leaving && member.duty != Duty::stuck && member.release != target();
}

bool Crew::isRolling() const {
  return vacancies > 0 ||
         std::any_of(members.begin(), members.end(), [this](const auto& m) { return isOutdated(m.second); });
}

void Crew::change(const EndpointPtr& now) {
  const bool released = !endpoint || endpoint->release != now->release;
  if (released && endpoint && !isRolling()) {
    for (auto& [worker, member] : members) member.spare = false;
  }
  endpoint = now;
  if (!released) return;
  halted = false;
  fault.clear();
  backoff = Millis(0);
  startAfter = {};
}

bool Crew::takeReady(const WorkerId& worker, Instant now) {
  Member& member = members.at(worker);
  const bool leaves = member.lastJob;
  if (member.duty == Duty::starting) {
    proven = member.release;
    backoff = Millis(0);
    if (member.release == endpoint->release) fault.clear();
  }
  member.duty = Duty::idle;
  member.since = now;
  member.lease = {};
  member.stuckFrom = Instant::max();
  member.replaces = false;
  // Of one that was stuck, somebody else may have the slot by now; and workersMax may have been lowered.
  const bool tooMany = slots() > endpoint->workersMax;
  if (!leaves && !tooMany && target()) return true;
  member.duty = Duty::leaving;
  if (leaves && target() && !takeSpare()) ++vacancies;
  return false;
}

void Crew::takeGone(const WorkerId& worker, const std::string& failure, Instant now) {
  const auto found = members.find(worker);
  if (found == members.end()) return;
  const Member member = found->second;
  members.erase(found);
  if (failure.empty()) return;
  fault = failure;
  if (member.replaces) ++vacancies;
  if (member.release == endpoint->release && proven && proven != member.release) {
    halted = true;  // for good: until the next release, or a restart
    return;
  }
  backoff = std::clamp(backoff * 2, kFirstBackoff, kLongestBackoff);
  startAfter = now + backoff;
}

// Whoever leaves now has been replaced before.
bool Crew::takeSpare() {
  const auto spare = std::find_if(members.begin(), members.end(), [](const auto& entry) {
    return entry.second.spare && entry.second.duty != Duty::leaving && entry.second.duty != Duty::stuck;
  });
  if (spare == members.end()) return false;
  spare->second.spare = false;
  spare->second.replaces = spare->second.duty == Duty::starting;
  return true;
}

// The last replacement is at work, so the next one may go. Nobody waits for a handler that may never return.
bool Crew::mayGoOn() const {
  return vacancies == 0 && std::none_of(members.begin(), members.end(), [](const auto& entry) {
           const Member& member = entry.second;
           return member.duty == Duty::starting || (member.lastJob && member.duty != Duty::stuck);
         });
}

Crew::Step Crew::nextStep() {
  Step step;
  const ReleasePtr next = target();
  if (!next) {
    for (auto& [id, member] : members) {
      if (member.duty == Duty::busy && retiring && member.stuckFrom == Instant::max()) {
        step.stopped.push_back(member.lease);
      }
      if (member.duty != Duty::idle) continue;
      member.duty = Duty::leaving;
      step.dismissed.push_back(id);
    }
    return step;
  }
  if (vacancies > 0) {
    --vacancies;
    step.hire = step.replaces = slots() < endpoint->workersMax;
    return step;
  }
  const auto old = [this](const auto& entry) { return isOutdated(entry.second); };
  if (!mayGoOn() || std::none_of(members.begin(), members.end(), old)) return step;
  if (proven != next && slots() < endpoint->workersMax) {
    step.hire = step.spare = true;  // there is room to see whether it starts before anybody has to leave
    return step;
  }
  const auto idle = std::find_if(members.begin(), members.end(),
                                 [&old](const auto& entry) { return old(entry) && entry.second.duty == Duty::idle; });
  if (idle != members.end()) {
    idle->second.duty = Duty::leaving;
    step.dismissed.push_back(idle->first);
    step.hire = step.replaces = !takeSpare() && slots() < endpoint->workersMax;
    return step;
  }
  const auto busy = std::find_if(members.begin(), members.end(),
                                 [&old](const auto& entry) { return old(entry) && entry.second.duty == Duty::busy; });
  if (busy != members.end()) busy->second.lastJob = true;
  return step;
}

}  // namespace jobq
