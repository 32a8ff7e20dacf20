// The plans of statements, as query_plans.cpp asks SQLite for them.
#pragma once

#include <set>
#include <string>

namespace jobq::test {

/// Returns the number of steps of plans judged so far. Any thread.
int judgedSteps();

/// Returns the statements whose plans were judged since the last call. Any thread.
std::set<std::string> extractJudgedStatements();

}  // namespace jobq::test
