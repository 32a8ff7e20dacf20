#include "claimed_inputs.h"

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace jobq::sqlite {

std::vector<ClaimedJob> ClaimedInputs::read(std::vector<Claim> claims) {
  std::vector<ClaimedJob> jobs;
  jobs.reserve(claims.size());
  read(std::move(claims), jobs);
  return jobs;
}

void ClaimedInputs::read(std::vector<Claim> claims, std::vector<ClaimedJob>& jobs) {
  for (Claim& claim : claims) {
    if (!claim.inputFile.exists() || readInput(claim)) jobs.push_back(std::move(claim.job));
  }
}

bool ClaimedInputs::readInput(Claim& claim) {
  try {
    if (std::optional<std::string> input = files_.read(claim.inputFile)) {
      claim.job.input = std::move(*input);
      files_.dropFromCache(claim.inputFile);
      return true;
    }
    if (isDeleted(claim.inputFile)) {
      leaveOut(claim, "", false);
      return false;
    }
    throw files_.missing(claim.inputFile);
  } catch (const DamagedBody& error) {
    leaveOut(claim, error.what(), true);
  } catch (const std::exception& error) {
    leaveOut(claim, error.what(), false);  // too few descriptors, or too little memory
  }
  return false;
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
  claim.leftOut.front() = {std::move(claim.job.lease), std::move(claim.job.endpoint), isDamaged};
  const Lock lock(mutex_);
  leftOut_.splice(leftOut_.end(), claim.leftOut);
}

std::list<LeftOutJob> ClaimedInputs::extractLeftOutJobs() {
  const Lock lock(mutex_);
  return std::exchange(leftOut_, {});
}

void ClaimedInputs::keepLeftOutJobs(std::list<LeftOutJob> jobs) {
  const Lock lock(mutex_);
  leftOut_.splice(leftOut_.end(), jobs);
}

}  // namespace jobq::sqlite
