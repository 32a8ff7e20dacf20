// The files with the output of workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "jobq/file_descriptor.h"
#include "jobq/job.h"

namespace jobq::process {

/// The log of one worker, `<worker>.log`, and the older file, `<worker>.log.1`. Neither has more than the bound. One
/// thread uses the object.
class WorkerLog {
 public:
  /// `folder` and the parent are created at the first output, with mode 0700; `most` is in bytes.
  WorkerLog(std::filesystem::path folder, const WorkerId& worker, std::uint64_t most);

  /// Appends the output. Returns 0, or errno of the failure; the rest of the output is lost then.
  int append(std::string_view output);

 private:
  /// Begins a new, empty file. Returns false after a failure, whose reason is in errno.
  bool open();

  const std::filesystem::path folder_;
  const std::filesystem::path path_;
  const std::uint64_t most_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

/// Removes logs from a folder, the workers that ended first before others, until the logs of `most` workers are left.
/// Logs of `running` workers stay and are not counted. Files that cannot be read or removed stay.
void removeOldLogs(const std::filesystem::path& folder, const std::set<WorkerId>& running, std::size_t most);

}  // namespace jobq::process
