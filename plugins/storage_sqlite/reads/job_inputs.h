// Inputs of jobs as a caller asks for them, and for a retry. A large input is read from its file outside of the
// snapshot, without a connection. If the file is missing, the job was removed meanwhile, as a second look at the row
// shows, or the folder is damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bodies/body_files.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"
#include "reads/job_listing.h"
#include "reads/readers.h"

namespace jobq::sqlite {

/// An input in a file, with its bytes; without a file the input is in its row.
struct LargeInput {
  BodyFile file;
  std::string bytes;
};

/// The input of a job; without bytes if the input is larger than asked.
struct FoundInput {
  std::uint64_t size = 0;
  std::string bytes;
};

/// Any thread may call the methods, which throw StorageError. All constructor arguments outlive the object.
class JobInputs {
 public:
  JobInputs(Readers& readers, BodyFiles& files, const JobNumbers& numbers, Clock& clock)
      : readers_(readers), files_(files), numbers_(numbers), clock_(clock) {}

  /// Returns the input of the job with its bytes, if it has at most `mostBytes`; an empty optional for an absent job.
  std::optional<FoundInput> read(const JobKey& key, std::uint64_t mostBytes);
  /// Returns the input of a job that can be retried if the input is in a file. The writer must not read a large file.
  LargeInput readForRetry(const JobKey& key);

 private:
  Readers& readers_;
  BodyFiles& files_;
  const JobNumbers& numbers_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
