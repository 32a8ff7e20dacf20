// An outcome as a change of state.
#pragma once

#include <string_view>
#include <variant>

#include "jobq/job.h"
#include "jobq/transitions.h"

namespace jobq::sqlite {

/// The bytes belong to the caller.
struct Report {
  Trigger trigger = Trigger::complete;
  std::string_view error;
  std::string_view output;
};

/// Returns the report of the outcome, which outlives the report. Pure; any thread.
inline Report reportOf(const Outcome& outcome) {
  if (const auto* failed = std::get_if<Failed>(&outcome)) return {Trigger::fail, failed->error, failed->output};
  return {Trigger::complete, {}, std::get<Completed>(outcome).output};
}

}  // namespace jobq::sqlite
