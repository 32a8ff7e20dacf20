// Reads the witness handler's journal (`tests/fault/crash/witness_handler.cpp`), piece by piece as the file grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "history_rules.h"

namespace jobq::fault {

struct JournalLine {
  bool begins = true;
  Run::End end = Run::End::none;  ///< `none` at the begin of a run
  std::uint64_t number = 0;
  std::string id;
  std::uint32_t attempt = 0;
  int process = 0;
  Nanos at = 0;
};

/// Confined to one thread. Reading needs a dead writer: each line is then whole or absent.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// Returns the lines since the last call. Throws std::runtime_error if the file is not a journal.
  std::vector<JournalLine> read();

  /// Frees the disk space of all read lines; the appending writer is not disturbed.
  void truncate();

 private:
  const std::filesystem::path file_;
  std::uintmax_t done_ = 0;
};

}  // namespace jobq::fault
