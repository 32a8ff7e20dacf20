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

// A repeated call that finds no record follows a lost call that removed the record. The answer is wrong only if the
// record was absent before the lost call too: then nobody misses the record.
bool RepeatedRecords::remove(std::string_view kind, std::string_view id) {
  int calls = 0;
  return callRepeatedly([&] {
    ++calls;
    return store_.remove(kind, id) || calls > 1;
  });
}

}  // namespace jobq
