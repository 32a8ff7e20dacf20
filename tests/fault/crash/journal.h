// Reads the witness handler's journal (witness_handler.cpp), piece by piece as it grows.
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
  Run::End end = Run::End::none;  ///< when it does not begin
  std::uint64_t number = 0;
  std::string id;
  std::uint32_t attempt = 0;
  int process = 0;
  Nanos at = 0;
};

/// One thread. Read it when its writer is dead: a line is there or it is not.
class JournalReader {
 public:
  explicit JournalReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// The lines since the last call. Throws std::runtime_error when the file is not a journal.
  std::vector<JournalLine> read();

  /// Frees the disk of what was read; the writer appends, so it does not notice.
  void truncate();

 private:
  const std::filesystem::path file_;
  std::uintmax_t done_ = 0;
};

}  // namespace jobq::fault
