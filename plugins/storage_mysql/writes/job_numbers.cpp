#include "writes/job_numbers.h"

namespace jobq::mysql {
namespace {

constexpr std::int64_t kUnitMillis = 4;
constexpr int kGeneratorBits = 6;
constexpr int kCounterBits = 7;
constexpr std::int64_t kGenerators = std::int64_t{1} << kGeneratorBits;
constexpr std::int64_t kCounters = std::int64_t{1} << kCounterBits;

/// Returns the greatest number of a job, or 0.
std::int64_t greatestNumber(Connection& connection) {
  Query query = connection.query("SELECT IFNULL(MAX(num), 0) FROM job");
  return query.next() ? query.integer(0) : 0;
}

}  // namespace

void JobNumbers::open(Connection& connection) {
  const std::int64_t greatest = greatestNumber(connection);
  connection.query("UPDATE counted SET value = LAST_INSERT_ID(value + 1) WHERE name = 'generator'").run();
  Query query = connection.query("SELECT LAST_INSERT_ID()");
  const std::int64_t opening = query.next() ? query.integer(0) : 0;
  Lock lock(mutex_);
  generator_ = opening % kGenerators;
  unit_ = greatest >> (kGeneratorBits + kCounterBits);
  counter_ = kCounters;
}

void JobNumbers::changeGenerator() {
  Lock lock(mutex_);
  generator_ = (generator_ + 1 + static_cast<std::int64_t>(chance_() % (kGenerators - 1))) % kGenerators;
  counter_ = kCounters;  // a greater unit: the new generator may be smaller than the old
}

std::int64_t JobNumbers::next() {
  const std::int64_t present = toEpochMillis(clock_.now()) / kUnitMillis;
  Lock lock(mutex_);
  if (present > unit_) {
    unit_ = present;
    counter_ = 0;
  } else if (counter_ >= kCounters) {
    ++unit_;  // more jobs than numbers, or a clock set back: the numbers run ahead of the clock
    counter_ = 0;
  }
  return (unit_ << (kGeneratorBits + kCounterBits)) | (generator_ << kCounterBits) | counter_++;
}

}  // namespace jobq::mysql
