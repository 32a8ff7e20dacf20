// A folder of files that grow by whole lines. With several writers at once, each line is whole and no line lies inside
// another. A line that does not fit on the disk leaves no bytes behind.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "jobq/mutex.h"

namespace jobq::webhook_file {

/// Any thread may call append(). The folder belongs to a single server: no lock keeps other processes from writing the
/// same files.
class LineFolder {
 public:
  /// Creates the folder with mode 0700 if absent; the parent must exist. Throws ConfigError.
  explicit LineFolder(std::filesystem::path folder);

  /// Appends `line`, with its line feed, to the file `name`, created with mode 0600. Returns an empty optional when
  /// the line is on disk, or the reason of the failure as a clause. Symbolic links, pipes and other special files are
  /// not written to. After a failed sync the line may be in the file nevertheless.
  [[nodiscard]] std::optional<std::string> append(const std::string& name, std::string_view line)
      JOBQ_EXCLUDES(growing_);

 private:
  int open(const std::string& name) const;

  const std::filesystem::path folder_;
  Mutex growing_;  // held from reading the length of a file until the file has grown, or has the old length again
};

}  // namespace jobq::webhook_file
