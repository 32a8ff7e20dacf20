// `jobqctl job stream`: prints the output of a running job chunk by chunk. The command reads by offset, so that other
// readers of the job lose no chunk (core/decisions/jobs.md).
#include <iostream>
#include <variant>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "jobq/job.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

bool isOver(const std::string& status) {
  return status == nameOf(JobState::completed) || status == nameOf(JobState::failed) ||
         status == nameOf(JobState::cancelled) || status == nameOf(JobState::timedOut);
}

// Returns the whole chunk unchanged, or only its output for a user at a terminal.
std::string_view shown(const json::Value& chunk, bool whole) {
  if (whole) return chunk.raw;
  const auto scanned = json::read(chunk.raw);
  const auto* object = std::get_if<json::Document>(&scanned);
  const auto output = object ? object->find("output") : std::nullopt;
  return output ? output->raw : chunk.raw;
}

std::size_t printChunks(const std::string& answer, const Invocation& invocation) {
  const auto scanned = json::read(answer);
  const auto* chunks = std::get_if<json::Document>(&scanned);
  if (!chunks || chunks->root.kind != json::Kind::array) {
    throw CommandError(ExitCode::unreachable, "the answer does not come from a jobq server: check the address");
  }
  for (const json::Value& chunk : chunks->elements) invocation.out << shown(chunk, invocation.json) << '\n';
  invocation.out.flush();
  return chunks->elements.size();
}

// Returns the error of the job as the end of a sentence, or an empty text if the job has no error or is gone meanwhile.
std::string errorOf(const Invocation& invocation) {
  try {
    const std::string job = invocation.api.get("/v2/" + ApiClient::segment(invocation.arguments.words[0]) + "/status/" +
                                               ApiClient::segment(invocation.arguments.words[1]));
    const std::string error = cell(*readObject(job), "error");
    return error == "-" ? "" : ": " + harmless(error);
  } catch (const CommandError&) {
    return "";
  }
}

}  // namespace

ExitCode streamJob(const Invocation& invocation) {
  const std::string path = "/v2/" + ApiClient::segment(invocation.arguments.words[0]) + "/stream/" +
                           ApiClient::segment(invocation.arguments.words[1]) + "?wait=20000&offset=";
  std::size_t offset = 0;
  std::string attempt;
  for (;;) {
    const StreamAnswer answer = invocation.api.getStream(path + std::to_string(offset));
    // The job went back to the queue, so its stream begins at the first chunk again.
    if (offset > 0 && answer.attempt != attempt) {
      std::cerr << "jobqctl: the job started again, and so does its stream\n";
      attempt = answer.attempt;
      offset = 0;
      continue;
    }
    attempt = answer.attempt;
    offset += printChunks(answer.body, invocation);
    if (!invocation.out) return ExitCode::ok;  // main() says why
    if (!isOver(answer.status)) continue;
    if (answer.status == nameOf(JobState::completed)) return ExitCode::ok;
    std::cerr << "jobqctl: the job is " << answer.status << errorOf(invocation) << '\n';
    return ExitCode::notCompleted;
  }
}

}  // namespace jobq::cli
