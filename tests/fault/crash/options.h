// The command line of crash_loop.
#pragma once

#include <cstdint>
#include <filesystem>

namespace jobq::fault {

struct Options {
  int cycles = 25;
  std::uint64_t seed = 0;             ///< decides kill moments and workloads; races depend on the machine
  std::uint64_t jobsPerCycle = 1500;  ///< acknowledged jobs in an average cycle without an early kill
  bool keep = false;                  ///< the folder stays
  bool expectViolation = false;       ///< success means a violation was found
  bool allWebhooks = false;           ///< waits at the end for webhooks claimed by a killed server: a minute
  std::filesystem::path plugins;      ///< a folder with plugins before the built plugins; may be empty
};

/// Ends the program with the usage if the command line is wrong.
Options readOptions(int argc, char** argv);

}  // namespace jobq::fault
