// The large inputs of claimed jobs. The writer claims a job without reading its file; the caller's thread reads the
// file after the commit.
#pragma once

#include <string>
#include <vector>

#include "body_files.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "readers.h"

namespace jobq::sqlite {

/// A claimed job. The input of the job is empty if `inputFile` exists.
struct Claim {
  ClaimedJob job;
  BodyFile inputFile;
};

/// A claimed job that no worker can run, because its input cannot be read.
struct UnreadableJob {
  LeaseRef lease;
  std::string error;
  bool isDamaged = false;  ///< false: a later attempt may read the input
};

/// Any thread may call the methods. The files and the readers outlive the object.
class ClaimedInputs {
 public:
  ClaimedInputs(const BodyFiles& files, Readers& readers) : files_(files), readers_(readers) {}

  /// Returns the jobs with their inputs. A job that was deleted since its claim is left out. A job whose input cannot
  /// be read is left out too, and kept for extractUnreadableJobs(). Throws no StorageError: the claims are committed.
  std::vector<ClaimedJob> read(std::vector<Claim> claims);

  /// Returns the jobs left out since the last call, for the next sweep.
  std::vector<UnreadableJob> extractUnreadableJobs();
  /// Keeps jobs that a failed sweep has not ended.
  void keepUnreadableJobs(const std::vector<UnreadableJob>& jobs);

 private:
  /// Returns false if the job is left out.
  bool readInput(Claim& claim);
  bool isDeleted(const BodyFile& file);
  void noteUnreadable(const Claim& claim, const char* error, bool isDamaged);

  const BodyFiles& files_;
  Readers& readers_;
  Mutex mutex_;
  std::vector<UnreadableJob> unreadable_ JOBQ_GUARDED_BY(mutex_);
};

/// The parts of the storage for large bodies, for a store that writes and reads bodies.
struct LargeBodies {
  BodyFiles& files;
  ClaimedInputs& inputs;
};

}  // namespace jobq::sqlite
