// A file that may be edited at any time, and the detection of edits.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>

namespace jobq::lua {

/// The state of a file at its last check. Used by one thread at a time.
class FileStamp {
 public:
  /// Stores the state `now` and returns true if the file was written since the last call, or may have been: a stamp
  /// younger than 100 ms proves no sameness.
  bool hasChanged(const struct stat& now);

 private:
  ino_t inode_ = 0;
  off_t size_ = -1;
  timespec changed_{};
  bool isYoung_ = true;  // the file may be written again within the same stamp
};

/// A file held open. A check of the open file costs a quarter of a check by name and detects writing in place,
/// replacement and removal. A replaced folder or a redirected symbolic link is not detected. Any thread.
class OpenFile {
 public:
  /// Opens `name`. Returns null if no regular file can be read there. Never waits.
  static std::shared_ptr<const OpenFile> open(const std::string& name);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  /// Returns the present state of the file; all zero if the state cannot be read.
  struct stat status() const;

  /// Returns true if the name is a symbolic link.
  bool isLinked() const { return isLinked_; }

  /// Returns at most `most` bytes from the beginning of the file.
  std::string read(std::size_t most) const;

 private:
  OpenFile(int descriptor, bool isLinked) : descriptor_(descriptor), isLinked_(isLinked) {}
  const int descriptor_;
  const bool isLinked_;
};
using OpenFilePtr = std::shared_ptr<const OpenFile>;

/// Returns the state of the file `name`; all zero if the file does not exist.
struct stat statusOf(const std::string& name);
/// Returns true if the file `name` exists.
bool isThere(const std::string& name);

}  // namespace jobq::lua
