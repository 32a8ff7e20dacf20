#include "container_end.h"

#include <cstdint>

namespace jobq::docker {
namespace {

constexpr std::int64_t kSignalBase = 128;  // by the convention of shells, an exit code above stands for a signal
constexpr std::int64_t kLastSignal = 64;
constexpr std::int64_t kKilled = kSignalBase + 9;

}  // namespace

std::string reasonOfEnd(const EndedState& state, std::string_view lastLine, bool wasKilled) {
  std::string reason = "it ended with exit code " + std::to_string(state.exitCode);
  if (state.isOutOfMemory) return reason + ": out of memory; give the machine more memory, or the worker less work";
  if (wasKilled && state.exitCode == kKilled) return reason + ": it was killed, because it had not ended in its time";
  if (state.exitCode > kSignalBase && state.exitCode <= kSignalBase + kLastSignal) {
    reason += " (signal " + std::to_string(state.exitCode - kSignalBase) + ")";
  }
  if (!state.error.empty()) return reason + ": " + state.error;
  if (state.exitCode != 0 && !lastLine.empty()) reason += ": " + std::string(lastLine);
  return reason;
}

}  // namespace jobq::docker
