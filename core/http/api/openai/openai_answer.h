// The answers of /openai calls: the outputs of a handler in the shapes of OpenAI's clients (core/decisions/openai.md).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/http/api/api_request.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/json_value.h"

namespace jobq {

/// Most bytes of an output that is joined from pieces, and of all chunks in a whole answer.
inline constexpr std::size_t kMaxOpenAiBytes = 20UL << 20;

/// A call of a client of OpenAI.
struct OpenAiRequest {
  bool isStream;           ///< the client asks for an event stream
  std::string submission;  ///< body of a submission with the input `{"openai_route":…,"openai_input":…}`
};

/// Reads a call. `route` begins with a slash; `body` is the body of a POST, no value for a GET. Fails with the remedy
/// if the body is not a JSON object, or if its member `stream` is neither a boolean nor null.
Result<OpenAiRequest> readOpenAiRequest(std::string_view route, std::optional<std::string_view> body);

/// Returns the answer of a COMPLETED job as one JSON text: the outputs of the job's chunks if there are any, else the
/// output. A list of one element counts as the element, a string with JSON inside as the JSON, and several strings as a
/// joined string. An error object has the status of its `code`, or 400.
ApiResponse wholeOpenAiAnswer(const std::vector<std::string>& chunks, std::string_view output);

/// Returns the answer of a job that has not COMPLETED: 500 or the status in the error, 504 for TIMED_OUT.
ApiResponse failedOpenAiAnswer(const Job& job);

/// The fate of a job after an early end of the call.
enum class JobAfterCall {
  isCancelled,
  goesOn  ///< the call has an Idempotency-Key, so another call may ask for the same job
};

/// Returns the sentence about a job that takes too long for a call.
std::string_view lateOpenAiSentence(JobAfterCall job);

/// Returns 504 for a job that takes too long.
ApiResponse lateOpenAiAnswer(JobAfterCall job);

/// Returns 400 for a call whose client has closed the sending side of the connection.
ApiResponse halfClosedOpenAiAnswer(JobAfterCall job);

/// Returns the answer for an output that reports an error, or no value for any other output.
std::optional<ApiResponse> openAiErrorIn(std::string_view output);

/// Joins the pieces of outputs over 1 MB (Chunk::partial). One thread.
class OutputJoiner {
 public:
  /// Returns the output that the chunk completes, or no value while pieces are missing. Pieces of over 20 MB in all are
  /// dropped.
  std::optional<std::string> add(const Chunk& chunk);

  /// Returns the bytes of the pieces of an incomplete output.
  std::size_t size() const noexcept { return pieces_.size(); }

 private:
  std::string pieces_;
};

/// Makes the text of an event stream out of the outputs of chunks. A handler may hand out an event in several strings.
/// The text of such an event is held until the blank line at the end of the event, so that no other text comes between,
/// and a worker that dies leaves no broken event. An event of over 1 MB leaves in pieces. One thread.
class OpenAiEvents {
 public:
  /// Returns the events that are whole with an output: a string unchanged, an object as an event, a list of less than
  /// 10,000 elements element by element.
  std::string add(std::string_view output);
  /// Returns a comment line, or an empty text inside an event that leaves in pieces.
  std::string comment(std::string_view text) const;
  /// Returns the end of the stream of a COMPLETED job: held text, and `data: [DONE]`, unless the handler has sent the
  /// mark.
  std::string end();
  /// Returns an error event, which ends a stream. Held text is dropped.
  std::string error(std::string_view sentence);
  /// Does the same with the error object of a handler.
  std::string errorObject(std::string_view json);
  /// Returns the bytes of held text.
  std::size_t heldSize() const noexcept { return held_.size(); }

 private:
  bool isBetweenEvents() const;
  /// Returns the line ends that close an open event.
  std::string_view closing() const { return isBetweenEvents() ? "" : "\n\n"; }
  void append(const json::Value& value);
  void note(std::string_view added);
  std::string removeWhole(std::size_t from);

  std::string held_;         // the begin of an event
  bool isInPieces_ = false;  // an event of over 1 MB has left in part
  std::string tail_;         // the last bytes of the stream and the held text, without carriage returns
};

}  // namespace jobq
