// The exceptions that may cross the plugin boundary.
//
// Expected outcomes (a duplicate, a stale lease, a job that is absent) are return types. What is thrown is an
// infrastructure failure, and it is caught at three borders only: the HTTP gate, the slot and the periodic services.
// The classes have default visibility, so that a host catches by type what a plugin with hidden visibility throws.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#define JOBQ_VISIBLE __attribute__((visibility("default")))

namespace jobq {

/// The root of everything jobq throws. what() is one sentence that names the thing and the remedy.
class JOBQ_VISIBLE Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The storage cannot do what was asked now: unreachable, read-only, full, or failed. Nothing was changed.
/// The gate answers 503, a slot keeps its outcome and tries again.
class JOBQ_VISIBLE StorageError : public Error {
 public:
  using Error::Error;
};

/// A setting is missing, misspelt or out of range. The server does not start; the message names the key.
class JOBQ_VISIBLE ConfigError : public Error {
 public:
  using Error::Error;
};

/// Thrown by a handler that fails on purpose; the job is FAILED with this message as its `error`.
/// A handler may throw anything else too: the job is then FAILED with that exception's what().
class JOBQ_VISIBLE JobFailed : public Error {
 public:
  explicit JobFailed(const std::string& message, std::string output = {})
      : Error(message), output_(std::move(output)) {}

  /// JSON text that stays in `output` beside the error; empty for none.
  const std::string& output() const noexcept { return output_; }

 private:
  std::string output_;
};

}  // namespace jobq
