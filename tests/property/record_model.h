// The simplest correct record store: a map and a counter. It counts 1, 2, 3; a storage counts as it likes, as long as
// its versions grow: which of them stands for which of the model's is learnt from its answers, and an answer that does
// not fit those before is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq::model {

/// What a storage's versions mean in the model.
class Versions {
 public:
  /// A change that is `mine` in the model has version `said`. Returns what is right: `said` if it fits all answers so
  /// far; else the version that was told before, or another than `said`.
  std::uint64_t ofChange(std::uint64_t mine, std::uint64_t said);
  /// All changes up to `mine` have versions up to `said`, and no other has. Returns `said` if that can be, else
  /// another.
  std::uint64_t ofMoment(std::uint64_t mine, std::uint64_t said);

  /// The change that was told to have this version; 0: none.
  std::uint64_t change(std::uint64_t said) const;
  /// The last change at a moment that was told; 0 before the first.
  std::uint64_t moment(std::uint64_t said) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ofChanges_;  // the storage's version of each of the model's that was told
  std::map<std::uint64_t, std::uint64_t> moments_;    // the model's last change at each version that was told
};

/// The verbs of RecordStore. Their versions are the model's own; asTold() turns them into the storage's. One thread.
class RecordModel {
 public:
  CreateResult create(Record record, Instant now);
  UpdateResult update(Record record, std::uint64_t expectedVersion, Instant now);
  std::optional<Record> find(const std::string& kind, const std::string& id) const;
  std::vector<Record> list(const std::string& kind) const;
  bool remove(const std::string& kind, const std::string& id, Instant now);
  /// Removals are remembered for a day and no longer.
  Changes changedSince(const std::string& kind, std::uint64_t version, Instant now) const;

  Versions& versions() { return versions_; }
  /// `right` as the storage would say it whose answer to the same question was `said`.
  CreateResult asTold(CreateResult right, const CreateResult& said);
  UpdateResult asTold(UpdateResult right, const UpdateResult& said);
  std::optional<Record> asTold(std::optional<Record> right, const std::optional<Record>& said);
  std::vector<Record> asTold(std::vector<Record> right, const std::vector<Record>& said);
  /// A removal of more than a day ago may still be told: nobody has swept yet.
  Changes asTold(Changes right, const Changes& said, const std::string& kind, Instant now);

 private:
  using Key = std::pair<std::string, std::string>;  // kind, id
  struct Removal {
    std::uint64_t version = 0;
    Instant at{};
  };

  std::optional<std::string> holderOf(const Record& record) const;
  Stored store(Record record, Instant now);

  std::map<Key, Record> records_;
  std::map<Key, Removal> removals_;
  std::uint64_t version_ = 0;
  Versions versions_;
};

}  // namespace jobq::model
