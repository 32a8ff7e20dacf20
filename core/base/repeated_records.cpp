#include "core/base/repeated_records.h"

#include "core/base/repeated_call.h"

namespace jobq {

CreateResult RepeatedRecords::create(Record record) {
  record.change = callIds_.next();
  return callRepeatedly([&] { return store_.create(record); });
}

UpdateResult RepeatedRecords::update(Record record, std::uint64_t expectedVersion) {
  record.change = callIds_.next();
  return callRepeatedly([&] { return store_.update(record, expectedVersion); });
}

// If a repeated call finds no record, the call before has removed the record. Only if the record was absent before the
// first call, too, the answer should have been false.
bool RepeatedRecords::remove(std::string_view kind, std::string_view id) {
  int calls = 0;
  return callRepeatedly([&] {
    ++calls;
    return store_.remove(kind, id) || calls > 1;
  });
}

}  // namespace jobq
