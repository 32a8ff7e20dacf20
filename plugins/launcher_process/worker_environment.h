// The variables of a worker's process.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jobq::process {

/// Variable of each worker's process, with a value of the worker alone: the launcher finds the processes of a worker
/// whose guard was killed.
inline constexpr std::string_view kMark = "JOBQ_LAUNCHED_WORKER";

/// Variable with the GPUs that CUDA, and also ROCm, shows to a program.
inline constexpr std::string_view kVisibleGpus = "CUDA_VISIBLE_DEVICES";

/// Returns the words with commas between them.
std::string joinedWithCommas(const std::vector<std::string>& words);

/// Returns the server's variables needed by every program: for the search of programs, the home, the language, the time
/// zone and the authorities of TLS.
std::map<std::string, std::string> inheritedVariables();

/// Returns the variables of the worker: `inherited`, replaced by the variables of `own`, and kMark with the value
/// `mark`.
std::map<std::string, std::string> environmentOf(const std::string& mark, std::map<std::string, std::string> own,
                                                 const std::map<std::string, std::string>& inherited);

}  // namespace jobq::process
