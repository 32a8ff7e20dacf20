// Asking the real storage and the model the same question; part of the judge.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "jobq/error.h"
#include "judge.h"
#include "storage_model.h"
#include "text.h"

namespace jobq::model {

template <class Ask, class Expect>
auto Judge::ask(const std::string& action, Ask real, Expect expected) {
  for (StorageModel& world : worlds_) world.now = real_->now();
  std::optional<std::invoke_result_t<Ask&>> answer;
  try {
    answer = real();
  } catch (const StorageError&) {
    if (std::exchange(failed_, true)) throw;
    doubts_ = worlds_;
    for (StorageModel& world : doubts_) (void)expected(world);
    throw;
  }
  const std::string said = text(*answer);
  drop(action, [&](StorageModel& world) {
    const std::string right = text(expected(world));
    return said == right ? "" : "said\n  " + said + "\ninstead of\n  " + right;
  });
  return std::move(*answer);
}

}  // namespace jobq::model
