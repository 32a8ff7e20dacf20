// The exceptions that may cross the plugin boundary.
//
// Expected outcomes (a duplicate, a stale lease, an absent job) are return types. An exception is a failure of the
// infrastructure. The request pipeline, the workers and the periodic services of the server catch exceptions. The
// classes have default visibility, so that the host catches by type the exceptions of a plugin with hidden visibility.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#define JOBQ_VISIBLE __attribute__((visibility("default")))

namespace jobq {

/// Base of all exceptions of jobq. The text of what() is a sentence with the subject of the failure and the remedy.
class JOBQ_VISIBLE Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The storage cannot do the step now: unreachable, read-only, full, or failed. The step changed nothing, unless the
/// exception is an OutcomeUnknown. The request pipeline answers 503; a worker keeps the outcome and repeats the report.
class JOBQ_VISIBLE StorageError : public Error {
 public:
  using Error::Error;
};

/// The connection to the storage broke before the answer came. The step happened whole, or not at all. The caller
/// repeats the call with the same arguments if the contract of the operation says "Repeatable" (storage.h).
class JOBQ_VISIBLE OutcomeUnknown : public StorageError {
 public:
  using StorageError::StorageError;
};

/// A setting is missing, misspelt or out of range. The server does not start; the message names the key.
class JOBQ_VISIBLE ConfigError : public Error {
 public:
  using Error::Error;
};

/// Thrown by a handler that fails on purpose. The job is FAILED with this message as its `error`. A handler may throw
/// any other exception too; the job is then FAILED with the what() of the exception.
class JOBQ_VISIBLE JobFailed : public Error {
 public:
  /// `message` is the error of the job; `output` is JSON text kept beside the error, or empty.
  explicit JobFailed(const std::string& message, std::string output = {})
      : Error(message), output_(std::move(output)) {}

  /// Returns the JSON text that stays in `output` beside the error, or an empty string.
  const std::string& output() const noexcept { return output_; }

 private:
  std::string output_;
};

}  // namespace jobq
