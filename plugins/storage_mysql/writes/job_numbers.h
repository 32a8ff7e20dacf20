// Numbers of jobs: the primary key of a job, and its arrival in the queue.
//
// A node makes the numbers, and can therefore send the rows of many new jobs together: a number made by the database
// would cost a round trip for each job. A number grows with the time of the database, in units of 4 ms; numbers of the
// same unit differ by the generator of the node and by a counter. Therefore the jobs of all nodes are in the order of
// submission: exactly for jobs of the same node, otherwise up to a unit and the error of the clock
// (`database_clock.h`).
//
// Number: | time, 40 bits (until the year 2109) | generator, 6 bits | counter, 7 bits |. A number has 53 bits because
// every JSON reader keeps such integers exactly, and a number is the cursor of a list.
//
// Each opening of a storage takes the next of 64 generators. Two nodes with the same generator may make the same
// number; the database refuses the second job, and the step is repeated with a number of another generator.
#pragma once

#include <cstdint>
#include <random>

#include "connection/connection.h"
#include "connection/database_clock.h"
#include "jobq/mutex.h"

namespace jobq::mysql {

/// Makes growing numbers. Any thread. The clock outlives the object.
class JobNumbers {
 public:
  explicit JobNumbers(const DatabaseClock& clock) : clock_(clock) {}

  /// Takes a generator, and goes on behind the greatest number in the database. Called once, before the first number.
  /// Throws MysqlError.
  void open(Connection& connection);

  std::int64_t next();

  /// Takes another generator by chance, because a number was taken.
  void changeGenerator();

 private:
  const DatabaseClock& clock_;
  Mutex mutex_;
  std::int64_t generator_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::int64_t unit_ JOBQ_GUARDED_BY(mutex_) = 0;  // unit of the last number
  std::int64_t counter_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::minstd_rand chance_ JOBQ_GUARDED_BY(mutex_){std::random_device{}()};
};

}  // namespace jobq::mysql
