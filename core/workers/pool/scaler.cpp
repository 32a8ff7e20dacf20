#include "core/workers/pool/scaler.h"

#include <algorithm>
#include <limits>

namespace jobq {
namespace {

/// The step from "as long as" to "longer than", because times are whole milliseconds.
constexpr Millis kLonger{1};

/// Pause before the jobs are counted again. A queue that grows sends no notification, and a count costs a request to
/// the storage.
constexpr Millis kRecount{1'000};

std::uint32_t bounded(std::uint64_t wanted, const ScalerView& view) {
  const std::uint64_t least = std::max(view.workers, std::min(view.workersMin, view.workersMax));
  const std::uint64_t most = std::max(view.workers, view.workersMax);
  return static_cast<std::uint32_t>(std::clamp(wanted, least, most));
}

ScalingDecision byQueueDelay(const ScalerView& view) {
  const std::uint32_t least = bounded(0, view);
  // Workers started for workersMin count as coming, too.
  if (least > view.workers || view.coming > 0) return {least, {}};
  if (view.waiting == 0 || view.workers >= view.workersMax) return {least, {}};
  const ScalingDecision oneMore{view.workers + 1, {}};
  if (view.busy == 0) return oneMore;
  const Millis mayWait = std::chrono::seconds(view.scaling.value);
  // The difference is below zero when the clock of another node runs ahead.
  const Millis waited = std::max(view.headWait.value_or(Millis(0)), Millis(0));
  if (waited > mayWait) return oneMore;
  return {view.workers, mayWait - waited + kLonger};
}

ScalingDecision byRequestCount(const ScalerView& view) {
  constexpr auto kMany = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t jobs = view.waiting + std::min<std::uint64_t>(view.busy, kMany - view.waiting);
  const std::uint64_t each = std::max(view.scaling.value, 1U);
  const std::uint64_t wanted = jobs / each + (jobs % each == 0 ? 0 : 1);
  const std::uint64_t serving = std::uint64_t{view.coming} + view.busy;
  const std::uint64_t missing = wanted > serving ? wanted - serving : 0;
  const std::uint32_t workers = bounded(view.workers + std::min<std::uint64_t>(missing, view.workersMax), view);
  if (view.waiting == 0 || workers >= view.workersMax) return {workers, {}};
  return {workers, kRecount};
}

}  // namespace

ScalingDecision scale(const ScalerView& view) noexcept {
  return view.scaling.type == ScalerType::queueDelay ? byQueueDelay(view) : byRequestCount(view);
}

}  // namespace jobq
