// The large inputs of claimed jobs. The writer claims a job without reading its file; the caller's thread reads the
// file after the commit.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "bodies/body_files.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "reads/readers.h"

namespace jobq::sqlite {

/// A claimed job that was left out of the claim: its input cannot be read, or the job was deleted meanwhile.
struct LeftOutJob {
  LeaseRef lease;
  EndpointId endpoint;
  bool isDamaged = false;  ///< false: a later attempt may read the input
  Instant dueAt{};         ///< the moment from which a sweep ends or returns the job
};

/// A claimed job. The input of the job is empty if `inputFile` exists.
struct Claim {
  /// Sets the file of the input. Called before the commit: the call makes the entry of a job that is left out, so that
  /// leaving the job out needs no memory.
  void setInputFile(const BodyFile& file) {
    inputFile = file;
    leftOut.resize(file.isFile() ? 1 : 0);
  }

  ClaimedJob job;
  BodyFile inputFile;
  Instant queuedAt{};             // unset for a job that was claimed in the step of its insert
  std::string apiKeyId{};         // unset for such a job, too
  std::list<LeftOutJob> leftOut;  // one element if the input has to be read, for a job that is left out
};

/// The files that were read last, up to a number of bytes. Not thread-safe.
class RecentFiles {
 public:
  explicit RecentFiles(std::uint64_t mostBytes) : mostBytes_(mostBytes) {}

  /// Adds the file as the newest one. Returns the oldest files, which are over the bound and are forgotten.
  std::vector<BodyFile> add(const BodyFile& file);

 private:
  const std::uint64_t mostBytes_;
  std::uint64_t bytes_ = 0;
  std::list<BodyFile> files_;  // the oldest first, each once
};

/// Any thread may call the methods. The files, the readers and the log outlive the object.
class ClaimedInputs {
 public:
  ClaimedInputs(const BodyFiles& files, Readers& readers, Log& log) : files_(files), readers_(readers), log_(log) {}

  /// Returns the jobs with their inputs. A job that was deleted since its claim, or whose input cannot be read, is left
  /// out and kept for extractLeftOutJobs(). Throws no StorageError: the claims are committed.
  std::vector<ClaimedJob> read(std::vector<Claim> claims);
  /// As above, but adds the jobs to `jobs`. Throws nothing if `jobs` has room for all claims.
  void read(std::vector<Claim> claims, std::vector<ClaimedJob>& jobs);

  /// Returns the jobs left out whose pause is over at `now`. The sweep ends or returns them, and names their endpoints:
  /// a claim without jobs looks like an empty queue, and other jobs may wait.
  std::list<LeftOutJob> extractLeftOutJobs(Instant now);
  /// Keeps jobs that a failed sweep has not ended.
  void keepLeftOutJobs(std::list<LeftOutJob> jobs);

 private:
  static constexpr std::uint64_t kMostCached = 256UL << 20;  // bytes

  /// Returns false if the job is left out.
  bool readInput(Claim& claim);
  bool isDeleted(const BodyFile& file);
  bool isGivenUp(const BodyFile& file) noexcept;
  void noteRead(const BodyFile& file) noexcept;
  void leaveOut(Claim& claim, const char* error, bool isDamaged) noexcept;

  const BodyFiles& files_;
  Readers& readers_;
  Log& log_;
  Mutex mutex_;
  std::list<LeftOutJob> leftOut_ JOBQ_GUARDED_BY(mutex_);
  // Number of failed reads of each file with a fault of its own, for a bounded number of files.
  std::map<std::int64_t, int> faults_ JOBQ_GUARDED_BY(mutex_);
  // The inputs in the system's cache: a job that returns to its queue is claimed again soon.
  RecentFiles cached_ JOBQ_GUARDED_BY(mutex_){kMostCached};
};

/// The parts of the storage for large bodies, for a store that writes and reads bodies.
struct LargeBodies {
  BodyFiles& files;
  ClaimedInputs& inputs;
};

}  // namespace jobq::sqlite
