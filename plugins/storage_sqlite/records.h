// The store of small named JSON records with a version. Contract: `sdk/include/jobq/record_store.h`.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "jobq/storage.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. The writer and the readers outlive the store.
class Records final : public RecordStore {
 public:
  Records(Writer& writer, Readers& readers) : writer_(writer), readers_(readers) {}

  CreateResult create(Record record) override;
  UpdateResult update(Record record, std::uint64_t expectedVersion) override;
  std::optional<Record> find(std::string_view kind, std::string_view id) override;
  std::vector<Record> list(std::string_view kind) override;
  bool remove(std::string_view kind, std::string_view id) override;
  Changes changedSince(std::string_view kind, std::uint64_t version) override;

 private:
  Writer& writer_;
  Readers& readers_;
};

}  // namespace jobq::sqlite
