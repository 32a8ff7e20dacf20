// Fixture of the tests of large bodies in the SQLite storage: jobs with bodies in files, and a look at the files.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "plugins/storage_sqlite/bodies/body_files.h"
#include "sqlite_fixture.h"
#include "testkit/thrown_text.h"

namespace jobq::testkit {

/// Returns a JSON text of `bytes` bytes.
inline std::string bodyOf(std::size_t bytes, char letter = 'x') { return '"' + std::string(bytes - 2, letter) + '"'; }

/// The size of the smallest body in a file.
inline constexpr std::size_t kLargeBody = sqlite::kMostInRow + 1;

class SqliteBodiesTest : public SqliteTest {
 protected:
  std::filesystem::path folder() const { return dir_ / "bodies"; }

  /// Returns the names of the files in order.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Returns the only file.
  std::filesystem::path onlyFile() const {
    const auto names = files();
    EXPECT_EQ(names.size(), 1U);
    return folder() / names.at(0);
  }

  static JobSpec large(const JobId& id, char letter = 'x') {
    JobSpec job = spec(id);
    job.input = bodyOf(kLargeBody, letter);
    return job;
  }
  /// Submits a job and ends the job with a large output.
  void submitAndEnd(JobSpec job) {
    const JobId id = job.id;
    submit(std::move(job));
    const auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    ASSERT_EQ(claimed[0].lease.job, id);
    ASSERT_EQ(finish(claimed[0].lease, bodyOf(kLargeBody, 'o')), ReportResult::accepted);
  }
  ReportResult finish(const LeaseRef& lease, const std::string& output) {
    return storage_->leases().finish(lease, Completed{output});
  }
  /// Returns the message of the StorageError that `act` throws, or an empty text.
  template <class Act>
  static std::string errorOf(Act act) {
    return thrownText<StorageError>(act);
  }
  SweepResult sweep() { return storage_->leases().sweep(100); }
  /// Removes every job and sweeps.
  void removeAll() {
    while (storage_->jobs().remove("ep", 100) == 100) continue;
    (void)sweep();
  }
};

}  // namespace jobq::testkit
