#include "bodies/claimed_inputs.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace jobq::sqlite {
namespace {

/// Reads of a file with a fault of its own before its job is FAILED, so that the job is not claimed for ever.
constexpr int kMostReads = 20;
/// The time between two reads.
constexpr Millis kPause{1'000};
/// Files whose reads are counted. Beyond them the oldest file is counted anew.
constexpr std::size_t kMostFaulty = 1'000;

// A job with little time to run would be TIMED_OUT by a whole pause.
Millis pauseOf(const ClaimedJob& job) { return std::clamp(job.runsFor / 2, Millis(0), kPause); }

}  // namespace

std::vector<BodyFile> RecentFiles::add(const BodyFile& file) {
  std::list<BodyFile> newest;
  const auto same = std::ranges::find(files_, file.number, &BodyFile::number);
  if (same == files_.end()) {
    newest.push_back(file);
    bytes_ += file.size;
  } else {
    newest.splice(newest.end(), files_, same);
  }
  files_.splice(files_.end(), newest);
  std::vector<BodyFile> old;
  std::uint64_t oldBytes = 0;
  for (const BodyFile& each : files_) {
    if (bytes_ - oldBytes <= mostBytes_) break;
    oldBytes += each.size;
    old.push_back(each);
  }
  for (std::size_t i = 0; i < old.size(); ++i) files_.pop_front();
  bytes_ -= oldBytes;
  return old;
}

std::vector<ClaimedJob> ClaimedInputs::read(std::vector<Claim> claims) {
  std::vector<ClaimedJob> jobs;
  jobs.reserve(claims.size());
  read(std::move(claims), jobs);
  return jobs;
}

void ClaimedInputs::read(std::vector<Claim> claims, std::vector<ClaimedJob>& jobs) {
  for (Claim& claim : claims) {
    if (!claim.inputFile.isFile() || readInput(claim)) jobs.push_back(std::move(claim.job));
  }
}

bool ClaimedInputs::readInput(Claim& claim) {
  try {
    if (std::optional<std::string> input = files_.read(claim.inputFile)) {
      claim.job.input = std::move(*input);
      noteRead(claim.inputFile);
      return true;
    }
    if (isDeleted(claim.inputFile)) {
      leaveOut(claim, "", false);
      return false;
    }
    throw files_.missingError(claim.inputFile);
  } catch (const DamagedBody& error) {
    leaveOut(claim, error.what(), true);
  } catch (const UnreadableBody& error) {
    leaveOut(claim, error.what(), isGivenUp(claim.inputFile));
  } catch (const std::exception& error) {
    leaveOut(claim, error.what(), false);  // too few descriptors, or too little memory: no fault of the job
  }
  return false;
}

// Counts a failed read. Without memory for the count the read is not counted.
bool ClaimedInputs::isGivenUp(const BodyFile& file) noexcept {
  try {
    const Lock lock(mutex_);
    if (++faults_[file.number] >= kMostReads) {
      faults_.erase(file.number);
      return true;
    }
    if (faults_.size() > kMostFaulty) faults_.erase(faults_.begin());
  } catch (const std::bad_alloc&) {
    return false;
  }
  return false;
}

// Without memory for the note the file leaves the cache at once.
void ClaimedInputs::noteRead(const BodyFile& file) noexcept {
  std::vector<BodyFile> old;
  try {
    const Lock lock(mutex_);
    faults_.erase(file.number);
    old = cached_.add(file);
  } catch (const std::bad_alloc&) {
    files_.dropFromCache(file);
  }
  for (const BodyFile& each : old) files_.dropFromCache(each);
}

// The row of a file is deleted before the file, and after the row of the job.
bool ClaimedInputs::isDeleted(const BodyFile& file) {
  return readers_.read([&](Connection& connection) {
    return !connection.query("SELECT 1 FROM body_file WHERE id = ?1").bind(file.number).next();
  });
}

// Without memory for the text the job is left out all the same: the next sweep ends or returns the job.
void ClaimedInputs::leaveOut(Claim& claim, const char* error, bool isDamaged) noexcept {
  try {
    if (*error != '\0') {
      log_.write(LogLevel::error, "storage.body",
                 "the input of job " + claim.job.lease.job + " cannot be read: " + error);
    }
  } catch (const std::bad_alloc&) {
    log_.write(LogLevel::error, "storage.body", "the input of a job cannot be read, and memory is short");
  }
  const Instant dueAt = isDamaged || *error == '\0' ? Instant::min() : claim.job.startedAt + pauseOf(claim.job);
  claim.leftOut.front() = {.lease = std::move(claim.job.lease),
                           .endpoint = std::move(claim.job.endpoint),
                           .isDamaged = isDamaged,
                           .dueAt = dueAt};
  const Lock lock(mutex_);
  leftOut_.splice(leftOut_.end(), claim.leftOut);
}

std::list<LeftOutJob> ClaimedInputs::extractLeftOutJobs(Instant now) {
  std::list<LeftOutJob> due;
  const Lock lock(mutex_);
  for (auto at = leftOut_.begin(); at != leftOut_.end();) {
    const auto job = at++;
    if (job->dueAt <= now) due.splice(due.end(), leftOut_, job);
  }
  return due;
}

void ClaimedInputs::keepLeftOutJobs(std::list<LeftOutJob> jobs) {
  const Lock lock(mutex_);
  leftOut_.splice(leftOut_.end(), jobs);
}

}  // namespace jobq::sqlite
