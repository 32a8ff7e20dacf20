// The simplest correct record store: a map and a counter. The model counts 1, 2, 3; a storage may count in any way with
// growing versions. The model learns from the answers of the storage which version stands for which number, and an
// answer in conflict with earlier answers is wrong.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/record_store.h"
#include "jobq/time.h"

namespace jobq::model {

/// The meaning of a storage's versions in the model.
class Versions {
 public:
  /// Notes that change `mine` of the model has version `said` in the storage. Returns the right version: `said` if
  /// consistent with all answers so far; otherwise the version told before, or a version other than `said`.
  std::uint64_t ofChange(std::uint64_t mine, std::uint64_t said);
  /// Notes that all changes up to `mine`, and no others, have versions up to `said`. Returns `said` if consistent,
  /// otherwise another version.
  std::uint64_t ofMoment(std::uint64_t mine, std::uint64_t said);

  /// Returns the change with the version `said`; 0 for an unknown version.
  std::uint64_t change(std::uint64_t said) const;
  /// Returns the last change at the moment of version `said`; 0 before the first.
  std::uint64_t moment(std::uint64_t said) const;

 private:
  std::map<std::uint64_t, std::uint64_t> ofChanges_;  // the storage's version of each known change of the model
  std::map<std::uint64_t, std::uint64_t> moments_;    // the model's last change at each known version
};

/// The operations of RecordStore, with versions of the model; asTold() translates results into versions of the storage.
/// Confined to one thread.
class RecordModel {
 public:
  CreateResult create(Record record, Instant now);
  UpdateResult update(Record record, std::uint64_t expectedVersion, Instant now);
  std::optional<Record> find(const std::string& kind, const std::string& id) const;
  std::vector<Record> list(const std::string& kind) const;
  bool remove(const std::string& kind, const std::string& id, Instant now);
  /// Removals are remembered for exactly a day.
  Changes changedSince(const std::string& kind, std::uint64_t version, Instant now) const;

  Versions& versions() { return versions_; }
  /// Translate `right` into the versions of the storage, which answered the same question with `said`.
  CreateResult asTold(CreateResult right, const CreateResult& said);
  UpdateResult asTold(UpdateResult right, const UpdateResult& said);
  std::optional<Record> asTold(std::optional<Record> right, const std::optional<Record>& said);
  std::vector<Record> asTold(std::vector<Record> right, const std::vector<Record>& said);
  /// Accepts removals older than a day as well, because the sweep may be due.
  Changes asTold(Changes right, const Changes& said, const std::string& kind, Instant now);

 private:
  using Key = std::pair<std::string, std::string>;  // kind, id
  struct Removal {
    std::uint64_t version = 0;
    Instant at{};
  };

  std::optional<std::string> holderOf(const Record& record) const;
  /// Returns whether the call that stored the record last is repeated. The record exists.
  bool isRepeated(const Record& record) const;
  Stored store(Record record, Instant now);

  std::map<Key, Record> records_;
  std::map<Key, CallId> lastCalls_;  // the call that stored each record last
  std::map<Key, Removal> removals_;
  std::uint64_t version_ = 0;
  Versions versions_;
};

}  // namespace jobq::model
