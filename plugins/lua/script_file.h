// A file that may be edited at any time, and whether that has happened.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <memory>
#include <string>

namespace jobq::lua {

/// What a file was like when it was last looked at.
class FileStamp {
 public:
  /// True: the file has been written since, or may have been; nothing but the moment of the look is kept of it.
  bool hasChanged(const struct stat& now);

 private:
  ino_t inode_ = 0;
  off_t size_ = -1;
  timespec changed_{};
  bool isYoung_ = true;  // it may be written again within the same stamp
};

/// A file held open. A look at it costs a quarter of one by name, and tells of everything that happens to it: written
/// in place, replaced, removed. What it cannot tell of is another folder in the place of its own, or a link to it that
/// leads elsewhere now.
class OpenFile {
 public:
  /// Null when there is no regular file that can be read. Never waits.
  static std::shared_ptr<const OpenFile> open(const std::string& name);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  struct stat status() const;

  /// Its name is a symbolic link's.
  bool isLinked() const { return isLinked_; }

  /// At most `most` bytes, from the beginning.
  std::string read(std::size_t most) const;

 private:
  OpenFile(int descriptor, bool isLinked) : descriptor_(descriptor), isLinked_(isLinked) {}
  const int descriptor_;
  const bool isLinked_;
};
using OpenFilePtr = std::shared_ptr<const OpenFile>;

/// As of no file when there is none.
struct stat lookAt(const std::string& name);
bool isThere(const std::string& name);

}  // namespace jobq::lua
