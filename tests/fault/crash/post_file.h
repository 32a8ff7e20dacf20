// Reads the file that plugin webhook_file writes, piece by piece as it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ios>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "post_book.h"

namespace jobq::fault {

/// One thread; the writer may be alive.
class PostFile {
 public:
  explicit PostFile(std::filesystem::path file) : file_(std::move(file)) {}

  /// The calls since the last time. A line that is no call is the beginning of one whose writer was killed.
  std::vector<Call> read();
  std::uint64_t torn() const { return torn_; }

 private:
  const std::filesystem::path file_;
  std::streamoff done_ = 0;
  std::uint64_t torn_ = 0;
};

/// A line of the file; nothing when it is not whole.
std::optional<Call> callIn(const std::string& line);

}  // namespace jobq::fault
