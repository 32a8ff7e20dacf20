// A process without a free descriptor, for a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace jobq::testkit {

/// Makes every call of the process for a descriptor fail with EMFILE until restore(), or until the end of the object.
class NoDescriptors {
 public:
  NoDescriptors() {
    makeFirstCalls();
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int lowest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(lowest);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~NoDescriptors() { restore(); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

  void restore() const { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  // UndefinedBehaviorSanitizer needs a pipe for the first call of each kind of object.
  static void makeFirstCalls() {
    try {
      throw std::system_error(EMFILE, std::generic_category());
    } catch (const std::system_error& error) {
      EXPECT_FALSE(error.code().category().message(error.code().value()).empty());
    }
  }

  rlimit before_{};
};

}  // namespace jobq::testkit
