// The command line of crash_loop.
#pragma once

#include <cstdint>
#include <filesystem>

namespace jobq::fault {

struct Options {
  int cycles = 25;
  std::uint64_t seed = 0;             ///< of kill moments and workloads; the races are the machine's own
  std::uint64_t jobsPerCycle = 1500;  ///< acknowledged, on the average of the cycles that are not killed early
  bool keep = false;                  ///< the folder stays
  bool expectViolation = false;       ///< success is a violation found
  bool wholePost = false;             ///< waits in the end for webhooks that a dead courier had claimed: a minute
  std::filesystem::path plugins;      ///< a folder whose plugins come before the built ones; empty: none
};

/// Ends the program with the usage when it cannot be understood.
Options readOptions(int argc, char** argv);

}  // namespace jobq::fault
