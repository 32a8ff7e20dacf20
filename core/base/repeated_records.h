// Records whose changes are repeated after a lost answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "jobq/record_store.h"

namespace jobq {

/// A RecordStore in front of the storage's store. Each change gets an id, and a change whose answer was lost is
/// repeated
/// (`core/base/repeated_call.h`). A change throws OutcomeUnknown if no call was answered, and otherwise what the store
/// throws. Any thread.
class RepeatedRecords final : public RecordStore {
 public:
  /// `store` outlives the object.
  explicit RepeatedRecords(RecordStore& store) : store_(store) {}

  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override { return store_.find(kind, id); }
  std::vector<Record> list(std::string_view kind) override { return store_.list(kind); }
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override {
    return store_.changedSince(kind, version);
  }

 private:
  RecordStore& store_;
  CallIds callIds_;
};

}  // namespace jobq
