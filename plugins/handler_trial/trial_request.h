// The input of a trial job. Every key is optional, other keys are ignored, and the steps run in this order:
//
//   progress    [any JSON value, ...]   reports each value as the job's progress
//   sleepMs     0 .. 604800000          waits so many milliseconds on the server's clock
//   burnMs      0 .. 604800000          burns so many milliseconds of processor time of the worker's thread
//   allocMb     0 .. 65536              allocates and touches so many MB, and keeps the memory until the job ends
//   chunks      0 .. 1000000            emits so many chunks {"chunk":0,"data":"xx..."}, numbered from 0
//     chunkBytes  0 .. 67108864         length of each chunk's "data"
//     chunkMs     0 .. 604800000        wait before each chunk
//   ignoreStop  true or false           continues when the job is stopped: no wait, loop or hang ends early
//   log         ["line", ...]           writes each line to the job's log
//   fail        "message"               throws JobFailed
//   throw       "message"               throws std::runtime_error
//   crash       "segv" "abort" "exit" "hang"   ends the process (exit: status 3), or waits for ever
//   output      any JSON value          output of the job, byte for byte; default: the whole input
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/time.h"

namespace jobq::trial {

enum class Crash { none, segv, abort, exit, hang };

/// A checked input. The views point into the input text.
struct TrialRequest {
  std::vector<std::string_view> progress;  ///< JSON texts
  Millis sleep{0};
  Millis burn{0};
  std::int64_t allocMb = 0;
  std::int64_t chunks = 0;
  std::int64_t chunkBytes = 0;
  Millis chunkWait{0};
  bool ignoreStop = false;
  std::vector<std::string> log;
  std::optional<std::string> failMessage;
  std::optional<std::string> throwMessage;
  Crash crash = Crash::none;
  std::string_view output;  ///< JSON text
};

/// Reads and checks the whole input before any step runs. `input` must outlive the result. Any thread. Throws JobFailed
/// with the key and the remedy if a value has the wrong type or is out of range.
TrialRequest readTrial(std::string_view input);

}  // namespace jobq::trial
