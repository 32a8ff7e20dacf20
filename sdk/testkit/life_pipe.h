// Tells a test whether processes are alive that are no children of the test.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace jobq::testkit {

/// A pipe with a name. Each process that inherits the open write end holds the pipe. A script opens the end with
/// `exec 9>"$LIFE"`, and so do all processes that it starts.
class LifePipe {
 public:
  /// Creates the pipe. Throws std::runtime_error.
  explicit LifePipe(std::filesystem::path path) : path_(std::move(path)) {
    if (::mkfifo(path_.c_str(), 0666) != 0) throw std::runtime_error("mkfifo failed");
    reader_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (reader_ < 0) throw std::runtime_error("the pipe cannot be opened");
  }
  ~LifePipe() { ::close(reader_); }
  LifePipe(const LifePipe&) = delete;
  LifePipe& operator=(const LifePipe&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Returns whether a process holds the pipe.
  bool isHeld() const {
    char byte = 0;
    ssize_t length = 1;
    while (length > 0) length = ::read(reader_, &byte, 1);
    return length < 0 && errno == EAGAIN;
  }

 private:
  const std::filesystem::path path_;
  int reader_ = -1;
};

}  // namespace jobq::testkit
