#include "core/model/handler_run.h"

#include <exception>
#include <string>
#include <utility>

#include "core/model/output_quota.h"
#include "jobq/error.h"
#include "jobq/json.h"

namespace jobq {
namespace {

Outcome checkOutput(std::string output) {
  if (output.size() > kMaxOutput) {
    return Failed{"the output has " + std::to_string(output.size()) + " bytes, the limit is " +
                      std::to_string(kMaxOutput) + ": upload large results and return their address",
                  ""};
  }
  if (!json::valid(output)) return Failed{"the handler returned an output that is not JSON", ""};
  return Completed{std::move(output)};
}

}  // namespace

Outcome runHandler(JobHandler& handler, std::string_view input, JobContext& context) {
  try {
    return checkOutput(handler.run(input, context));
  } catch (const JobFailed& failure) {
    const bool keep = failure.output().size() <= kMaxOutput && json::valid(failure.output());
    return Failed{failure.what(), keep ? failure.output() : ""};
  } catch (const std::exception& error) {
    return Failed{error.what(), ""};
  } catch (...) {
    return Failed{"the handler threw an exception that is not a std::exception", ""};
  }
}

void checkChunk(std::string_view chunk) {
  if (chunk.size() <= kMaxOutput) return;
  throw JobFailed("the handler emitted a chunk of " + std::to_string(chunk.size()) +
                  " bytes, the limit at a remote worker is " + std::to_string(kMaxOutput) + ": emit smaller chunks");
}

void checkProgress(std::string_view json) {
  if (json.size() > kMaxProgressBytes) {
    throw JobFailed("the handler reported a progress of " + std::to_string(json.size()) + " bytes, the limit is " +
                    std::to_string(kMaxProgressBytes));
  }
  if (!json::valid(json)) throw JobFailed("the handler reported a progress that is not JSON");
}

}  // namespace jobq
