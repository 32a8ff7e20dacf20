// The comparison of a real storage with the model.
//
// An operation with a StorageError leaves a doubt: until the storage is opened again the operation has not happened,
// and afterwards the operation may have happened, because the bytes may have reached the disk. From then on there are
// several worlds. A world contradicted by an answer is dropped; with no world left, the storage is wrong. Only the
// first failure leaves a doubt: after a failure of the disk a storage writes no more until opened again.
//
// A loss of power may undo the latest unsynced steps (sdk/include/jobq/storage.h): the worlds before each such step
// join the others when the storage is opened again after a loss of power. A later synced step makes the steps before
// durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "storage_model.h"
#include "text.h"

namespace jobq::model {

class Disagreement : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The end of the last opening of the storage: the process closed the storage or died, or the machine lost power.
enum class FormerEnd { process, power };

/// The real storage and the possible worlds. Confined to one thread at a time.
class Comparison {
 public:
  /// Null means not open yet.
  explicit Comparison(std::shared_ptr<Storage> real);

  /// Replaces the dead process, which had the storage open, by a new process with `real`.
  void reopen(std::shared_ptr<Storage> real, FormerEnd end);
  void close() { real_.reset(); }
  /// Begins the life of the node in each world.
  void follow(const Holder& life) {
    for (StorageModel& world : worlds_) world.state.life = world.state.epochs = life.epoch;
  }

  /// Asks the real storage by `real` and each world by `expected`. Returns the answer of the real storage; throws
  /// Disagreement if the answer is right in no world, and the StorageError of the real storage.
  template <class Ask, class Expect>
  auto ask(const std::string& action, Ask real, Expect expected);
  /// Does the same for a step that survives a loss of power, and makes all earlier steps survive too.
  template <class Ask, class Expect>
  auto askSynced(const std::string& action, Ask real, Expect expected) {
    auto answer = ask(action, real, expected);
    noteSynced();
    return answer;
  }
  /// Does the same for a step that a loss of power may undo.
  template <class Ask, class Expect>
  auto askUnsynced(const std::string& action, Ask real, Expect expected) {
    unsynced_.insert(unsynced_.end(), worlds_.begin(), worlds_.end());
    return ask(action, real, expected);
  }
  /// Notes that every step so far survives a loss of power.
  void noteSynced() { noteSyncedUpTo(unsyncedMark()); }
  /// Notes the same for the steps before the call of unsyncedMark() with the result `mark`.
  void noteSyncedUpTo(std::uint64_t mark) {
    if (mark <= forgotten_) return;
    unsynced_.erase(unsynced_.begin(), unsynced_.begin() + static_cast<std::ptrdiff_t>(mark - forgotten_));
    forgotten_ = mark;
  }
  /// Returns the number of worlds left behind by unsynced steps so far.
  std::uint64_t unsyncedMark() const { return forgotten_ + unsynced_.size(); }
  /// Notes that a read of `job` makes the last unsynced step durable, and all steps before.
  void noteUnsynced(const JobId& job) { unsyncedJobs_[job] = unsyncedMark(); }
  /// Notes such a read. Later steps may be undone: if the job was durable already, the read has synced nothing.
  void noteShown(const JobId& job);
  /// Drops every world for which `contradiction` returns a text; throws Disagreement if no world is left.
  void drop(const std::string& action, const std::function<std::string(StorageModel&)>& contradiction);

  /// Returns the first disagreement; empty without any. The text is kept because the core may catch the exception.
  const std::string& disagreement() const { return disagreement_; }
  const StorageModel& model() const { return worlds_.front(); }
  Storage& real() const { return *real_; }

 private:
  std::shared_ptr<Storage> real_;
  std::vector<StorageModel> worlds_;             // never empty
  std::vector<StorageModel> doubts_;             // worlds that join the others at the next opening of the storage
  std::vector<StorageModel> unsynced_;           // worlds before each step that a loss of power may undo now
  std::uint64_t forgotten_ = 0;                  // worlds that were removed from the front of unsynced_
  std::map<JobId, std::uint64_t> unsyncedJobs_;  // unsyncedMark() behind the last noteUnsynced() of each job
  bool failed_ = false;                          // a call failed since the storage was opened
  std::string disagreement_;
};

template <class Ask, class Expect>
auto Comparison::ask(const std::string& action, Ask real, Expect expected) {
  for (StorageModel& world : worlds_) world.state.now = real_->now();
  std::optional<std::invoke_result_t<Ask&>> answer;
  try {
    answer = real();
  } catch (const StorageError&) {
    if (std::exchange(failed_, true)) throw;
    doubts_ = worlds_;
    for (StorageModel& world : doubts_) (void)expected(world);
    throw;
  }
  const std::string said = text(*answer);
  drop(action, [&](StorageModel& world) {
    const std::string right = text(expected(world));
    return said == right ? "" : "said\n  " + said + "\ninstead of\n  " + right;
  });
  return std::move(*answer);
}

}  // namespace jobq::model
