// The end of a script after a number of checks, for tests that count checks instead of time.
#pragma once

#include <optional>
#include <string>

#include "sandbox/execution_limiter.h"

namespace jobq::lua::test {

/// Ends a script at its check number `last`, with the reason "time is over". Counts the checks.
class EndAtCheck final : public EndCondition {
 public:
  explicit EndAtCheck(int last) : last_(last) {}

  std::optional<std::string> reasonToEnd() override {
    if (++checks_ < last_) return std::nullopt;
    return "time is over";
  }
  int checks() const { return checks_; }

 private:
  const int last_;
  int checks_ = 0;
};

}  // namespace jobq::lua::test
