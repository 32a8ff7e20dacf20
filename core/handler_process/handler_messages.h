// Messages between jobq-worker and the process of a handler, over a socket of the machine (--isolation process).
//
// A message consists of a size, a byte with the kind, and the fields. The size has four bytes, the lowest byte first,
// and does not count itself. Each field is a size of four bytes and the bytes of the field. Payloads pass byte for
// byte. Both ends are the same program file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/handler_process/local_handler.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

enum class MessageKind : std::uint8_t {
  // From the worker.
  setup = 1,  ///< first message: the handler to make
  job,
  stop,     ///< fires the stop token of the job
  noted,    ///< answer to chunk or progress
  refused,  ///< answer to chunk or progress: the sentence of a JobFailed

  // From the process of the handler.
  ready,  ///< the handler is made
  fault,  ///< why no handler can be made
  chunk,  ///< a chunk and its metrics
  progress,
  line,       ///< a line for the log of the job
  completed,  ///< end of the run: the output
  failed      ///< end of the run: the error, and the output beside it
};

struct Message {
  MessageKind kind{};
  std::vector<std::string> fields{};
};

/// Thrown for bytes that are not a message, and for a message that the receiver does not expect.
class MalformedMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Most bytes of a message without the size. The largest messages are a job (a request of 20 MB) and an output of 20 MB
/// beside an error.
inline constexpr std::size_t kMostMessageBytes = 32UL << 20;
/// Most fields of a message.
inline constexpr std::size_t kMostFields = 100'000;

/// Returns the bytes of a message. Throws MalformedMessage if the message is over the bounds. Pure.
std::string encodeMessage(MessageKind kind, const std::vector<std::string_view>& fields = {});

/// Cuts a stream of bytes into messages. One thread uses the object, which holds at most a message and the bytes of the
/// last add().
class MessageReader {
 public:
  /// Adds the next bytes of the stream.
  void add(std::string_view bytes) { buffer_.append(bytes); }
  /// Returns the next message once it is whole. Throws MalformedMessage as soon as the bytes cannot be a message; the
  /// reader is of no use then.
  std::optional<Message> next();
  /// Returns true if all bytes were part of messages that next() has returned.
  bool isEmpty() const { return begin_ == buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t begin_ = 0;  // begin of the next message in buffer_
};

/// A job in the form for the process.
struct HandedJob {
  JobId id;
  std::uint32_t attempt = 1;
  std::optional<Millis> time{};  ///< until the deadline; absent without a deadline
  std::string s3Config{};
  std::string input{};
};

/// Each write function returns the bytes of a message. Each read function returns the content of a message, and throws
/// MalformedMessage if the fields do not fit the kind. Pure.
std::string writeSetup(const HandlerSetup& setup);
HandlerSetup readSetup(Message message);
std::string writeJob(std::string_view input, const JobContext& context, Instant now);
HandedJob readJob(Message message);
/// The outcome is one of runHandler(). A long error is cut.
std::string writeOutcome(const Outcome& outcome);
/// Throws MalformedMessage also for an output that is not JSON or over 20 MB.
Outcome readOutcome(Message message);
std::string writeLine(LogLevel level, std::string_view line);

struct LogLine {
  LogLevel level{};
  std::string text;
};
LogLine readLine(Message message);

}  // namespace jobq::worker
