// A folder of files that grow by whole lines: of several writers at once, each line is whole and none is in another; a
// line that does not fit on the disk leaves nothing behind.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "jobq/mutex.h"

namespace jobq::webhook_file {

/// Any thread. The folder belongs to one server: another process that writes the same files is not waited for.
class LineFolder {
 public:
  /// Makes the folder (mode 0700) in a parent that exists, when it is not there yet. Throws ConfigError.
  explicit LineFolder(std::filesystem::path folder);

  /// Appends a line, its line feed included, to the file `name` (made with mode 0600), and returns when it is on disk,
  /// or why it is not, as a clause; empty is good. Symbolic links, pipes and the like are not written to. After a
  /// failed sync the line may be there all the same.
  [[nodiscard]] std::string append(const std::string& name, std::string_view line) JOBQ_EXCLUDES(growing_);

 private:
  int open(const std::string& name) const;

  const std::filesystem::path folder_;
  Mutex growing_;  // held from looking at a file's length until it has grown, or has that length again
};

}  // namespace jobq::webhook_file
