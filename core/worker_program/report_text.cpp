#include "core/worker_program/report_text.h"

#include <cstddef>
#include <variant>

#include "core/base/words.h"
#include "jobq/json_writer.h"

namespace jobq::worker {
namespace {

constexpr std::size_t kLongestError = 1UL << 20;  // the server refuses reports over 24 MB

}  // namespace

std::string resultText(const Outcome& outcome) {
  return json::object([&outcome](json::ObjectWriter& out) {
    if (const auto* completed = std::get_if<Completed>(&outcome)) return out.raw("output", completed->output);
    const auto& failed = std::get<Failed>(outcome);
    // The server takes a report with an empty error for a success.
    out.member("error",
               failed.error.empty() ? "the handler failed without a message" : clipped(failed.error, kLongestError));
    if (!failed.output.empty()) out.raw("output", failed.output);
  });
}

std::string namedText(const JobId& job, std::string_view report) {
  return "{\"id\":\"" + job + "\"," + std::string(report.substr(1));  // a report has a member, and the id no escapes
}

std::string lossText(const JobId& job) { return "{\"lost\":[\"" + job + "\"]}"; }

std::string progressText(std::string_view json) {
  return json::object([json](json::ObjectWriter& out) {
    out.member("status", "IN_PROGRESS");
    out.raw("output", json);
  });
}

std::string chunkText(std::string_view chunk, std::string_view metrics) {
  return json::object([chunk, metrics](json::ObjectWriter& out) {
    out.raw("output", chunk);
    if (!metrics.empty()) out.raw("metrics", metrics);
  });
}

}  // namespace jobq::worker
