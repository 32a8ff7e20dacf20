// The server's data directory: made with mode 0700 and locked, so that two servers never share one directory.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/file_descriptor.h"

namespace jobq {

/// Holds the lock from construction to destruction. The lock also ends with the process, whatever the cause.
class DataDir {
 public:
  /// Throws ConfigError if the directory cannot be made, or if another server has locked the directory.
  explicit DataDir(std::filesystem::path path);
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Calls restrictToOwner() for the directory and its files, of any owner. Returns the sentences for the log.
  std::vector<std::string> restrictToOwner() const;

 private:
  const std::filesystem::path path_;
  FileDescriptor lock_;
};

/// Removes the access of group and others from `path`, if the path exists and grants any. Returns a sentence for the
/// log about the change or the failure, or nullopt if no change was needed.
std::optional<std::string> restrictToOwner(const std::filesystem::path& path);

/// Replaces a whole file, with mode 0600: a reader sees the old or the new text, never a part. Throws Error.
void writePrivateFile(const std::filesystem::path& path, std::string_view text);

/// Returns the text of the file without a byte order mark, or nullopt if the file does not exist. Throws Error if the
/// file cannot be read.
std::optional<std::string> readFile(const std::filesystem::path& path);

}  // namespace jobq
