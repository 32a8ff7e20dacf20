// The answers of /openai calls: what a handler gave, in the shapes of OpenAI's clients (core/decisions/openai.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/http/api/api_request.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"

namespace jobq {

/// Returns the input of the job for a call: `{"openai_route":…,"openai_input":…}`. `route` begins with a slash; `body`
/// is a JSON object, or empty for a GET.
std::string openAiInput(std::string_view route, std::string_view body);

/// Returns whether the JSON object `body` asks for a stream, or no value if its member `stream` is neither a boolean
/// nor null.
std::optional<bool> asksForStream(std::string_view body);

/// Returns the answer of a COMPLETED job as one JSON text: the chunks if there are any, else the output. A list of one
/// element counts as the element, a string that holds JSON as its JSON; several strings count as one. An error object
/// has the status of its `code`, or 400.
ApiResponse wholeOpenAiAnswer(const std::vector<Chunk>& chunks, std::string_view output);

/// Returns the answer of a job that has ended otherwise: 500 or the status that the error names, 504 for TIMED_OUT.
ApiResponse failedOpenAiAnswer(const Job& job);

/// Returns 504 for a job that took too long and was cancelled.
ApiResponse lateOpenAiAnswer();

/// Returns true if the JSON text is an object that reports an error.
bool isOpenAiError(std::string_view output);

/// Makes the text of an event stream out of the outputs of chunks. One thread.
class OpenAiEvents {
 public:
  /// Returns the events of an output: a string as it is, an object as one event, a list of less than 10,000 elements
  /// element by element.
  std::string add(std::string_view output);
  /// Returns the end of the stream: `data: [DONE]`, unless the handler has sent it.
  std::string end();
  /// Returns an error event, the last one of a stream.
  static std::string error(std::string_view sentence);

 private:
  std::string tail_;  // the last bytes that were returned
};

}  // namespace jobq
