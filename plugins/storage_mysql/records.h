// The store of small named JSON records with a version. Contract: `sdk/include/jobq/record_store.h`.
//
// Each change locks the row of the last version first, and keeps the lock until its commit. The changes therefore
// become visible in the order of their versions, names cannot be given twice, and a repeated call waits for the call
// before.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "jobq/storage.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods. The arguments of the constructor outlive the store.
class Records final : public RecordStore {
 public:
  Records(Writer& writer, Readers& readers, Glances& glances) : writer_(writer), readers_(readers), glances_(glances) {}

  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override;
  std::vector<Record> list(std::string_view kind) override;
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override;

 private:
  Writer& writer_;
  Readers& readers_;
  Glances& glances_;
};

}  // namespace jobq::mysql
