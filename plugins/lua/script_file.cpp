#include "script_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

namespace jobq::lua {
namespace {

// File systems count in steps of a few milliseconds. Two texts of one length within a step look the same.
constexpr std::chrono::milliseconds kStep{100};

}  // namespace

// Compares the time of the change, not of the writing: the time of the change moves also when the file is replaced or
// removed.
bool FileStamp::hasChanged(const struct stat& now) {
  const bool same = now.st_ino == inode_ && now.st_size == size_ && now.st_ctim.tv_sec == changed_.tv_sec &&
                    now.st_ctim.tv_nsec == changed_.tv_nsec;
  if (same && !isYoung_) return false;
  inode_ = now.st_ino;
  size_ = now.st_size;
  changed_ = now.st_ctim;
  const auto changed = std::chrono::seconds(changed_.tv_sec) + std::chrono::nanoseconds(changed_.tv_nsec);
  isYoung_ = std::chrono::system_clock::now().time_since_epoch() - changed < kStep;
  return true;
}

OpenFilePtr OpenFile::open(const std::string& name) {
  // Opening a pipe would wait for its writer. Devices and folders hold no script.
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat status {};
  const bool isLinked = ::lstat(name.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  OpenFilePtr file(new OpenFile(descriptor, isLinked));
  return S_ISREG(file->status().st_mode) ? file : nullptr;
}

OpenFile::~OpenFile() { ::close(descriptor_); }

struct stat OpenFile::status() const {
  struct stat status;
  if (::fstat(descriptor_, &status) != 0) status = {};
  return status;
}

std::string OpenFile::read(std::size_t most) const {
  std::string text(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t count = ::pread(descriptor_, text.data() + size, most - size, static_cast<off_t>(size));
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

struct stat statusOf(const std::string& name) {
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) status = {};
  return status;
}

bool isThere(const std::string& name) { return statusOf(name).st_ino != 0; }

}  // namespace jobq::lua
