// Reads the file of plugin webhook_file, piece by piece as the file grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ios>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "webhook_calls.h"

namespace jobq::fault {

/// Confined to one thread; the writer may be alive.
class CallFile {
 public:
  explicit CallFile(std::filesystem::path file) : file_(std::move(file)) {}

  /// Returns the calls since the last read. A line without a call is the beginning of a call with a killed writer.
  std::vector<ReceivedCall> read();
  std::uint64_t torn() const { return torn_; }

 private:
  const std::filesystem::path file_;
  std::streamoff done_ = 0;
  std::uint64_t torn_ = 0;
};

/// Returns the call of a line of the file; empty if the line is not whole.
std::optional<ReceivedCall> callIn(const std::string& line);

}  // namespace jobq::fault
