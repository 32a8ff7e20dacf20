// The server's data directory: made with mode 0700, and locked, so that two servers never share it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jobq {

/// Holds the lock while it lives. The lock ends with the process, however it ends.
class DataDir {
 public:
  /// Throws ConfigError when the directory cannot be made or another server has it.
  explicit DataDir(std::filesystem::path path);
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// closeToOthers() for the directory and the files in it, whoever made them. Returns its sentences.
  std::vector<std::string> closeToOthers() const;

 private:
  const std::filesystem::path path_;
  int lock_;
};

/// Takes the access of the group and of others from `path`, if it exists and they have any. Returns a sentence about
/// what was changed, or why it could not be, for the log; "" if nothing was to be done.
std::string closeToOthers(const std::filesystem::path& path);

/// Replaces a file whole, with mode 0600: a reader sees the old or the new text, never a part. Throws Error.
void writePrivateFile(const std::filesystem::path& path, std::string_view text);

/// The file's text, or nothing if there is no such file. Throws Error when it cannot be read.
std::optional<std::string> readFile(const std::filesystem::path& path);

}  // namespace jobq
