#include "writes/pending_write.h"

#include <algorithm>
#include <utility>

namespace jobq::sqlite {
namespace {

/// Waking a thread costs as much as a small statement, and all queued writes wait for the writer. The writer therefore
/// wakes every eighth caller, and each woken caller wakes the seven behind.
constexpr int kWokenTogether = 8;

}  // namespace

void PendingWrite::awaitDone() {
  done_.await();
  while (followers != nullptr) std::exchange(followers, followers->next)->markDone();
}

void PendingWrite::markDone() { done_.set(); }

void WriteQueue::push(PendingWrite& write) {
  (first_ == nullptr ? first_ : last_->next) = &write;
  last_ = &write;
  ++size_;
}

PendingWrite* WriteQueue::pop(std::size_t bytes) {
  if (first_ == nullptr) return nullptr;
  PendingWrite* last = first_;
  --size_;
  for (std::size_t taken = last->bytes; last->next != nullptr; last = last->next, --size_) {
    const std::size_t next = last->next->bytes;
    if (next > bytes - std::min(taken, bytes)) break;
    taken += next;
  }
  return std::exchange(first_, std::exchange(last->next, nullptr));
}

// A notified caller may return at once and destroy its write: the write is not touched after its notification.
void PendingWrite::markAllDone(PendingWrite* group) {
  PendingWrite* ending = nullptr;
  if (group != nullptr && !(group->isAwaited && group->next == nullptr)) {
    WriteQueue awaited;
    WriteQueue others;
    for (PendingWrite* write = group; write != nullptr;) {
      PendingWrite& each = *std::exchange(write, write->next);
      each.next = nullptr;
      (each.isAwaited ? awaited : others).push(each);
    }
    group = awaited.popAll();
    ending = others.popAll();
  }
  wakeAll(group);
  while (ending != nullptr) std::exchange(ending, ending->next)->end();
}

// Marks a list of writes with callers as done.
void PendingWrite::wakeAll(PendingWrite* group) {
  while (group != nullptr) {
    PendingWrite* const leader = group;
    PendingWrite* last = leader;
    for (int i = 1; i < kWokenTogether && last->next != nullptr; ++i) last = last->next;
    group = std::exchange(last->next, nullptr);
    leader->followers = leader->next;
    leader->markDone();
  }
}

}  // namespace jobq::sqlite
