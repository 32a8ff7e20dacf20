// Contract of the execution stage: a handler does the work of a job. The plugin is a factory; each worker owns one
// handler made by the factory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// Access of a handler to the job that the handler runs. The host owns the context, which is valid until run() returns.
/// Only the thread of run() may call the functions. The reports emit(), progress() and log() block while the storage
/// fails, at most until the stop token fires. The host drops the reports of a job that was cancelled, timed out or
/// lost, without an error: the stop token tells the handler about the end of the job.
class JobContext {
 public:
  virtual ~JobContext() = default;

  /// Returns the id of the job, equal in each run of the job. A short job of a waiting caller may run before the
  /// insert; the first call then stores the job, and throws JobFailed if the storage does not take the job.
  virtual const JobId& id() const = 0;
  /// Returns the number of the attempt. The first run of a job has the number 1; further runs have greater numbers.
  virtual std::uint32_t attempt() const = 0;
  /// Returns the token that fires on cancel, execution timeout, expiry and shutdown. A handler without a check of the
  /// token keeps its thread until run() returns, because no thread can be killed.
  virtual std::stop_token stopToken() const = 0;
  /// Returns the moment of the execution timeout or of the expiry, whichever is first, on the server's clock.
  virtual Instant deadline() const = 0;
  /// Returns the job's `s3Config` object as JSON text, or an empty view if the job has none. The text is a secret: a
  /// handler neither logs it nor puts it into an output.
  virtual std::string_view s3Config() const = 0;

  /// Hands out one chunk of output while the job runs; `/stream` returns the chunks. `chunk` is JSON text; `metrics` is
  /// the text of a JSON object of at most 64 KB, or empty. Throws JobFailed if a text breaks these rules, or if the
  /// chunks of the job exceed their total limit (256 MB, with 256 bytes added for each chunk).
  virtual void emit(std::string_view chunk, std::string_view metrics = {}) = 0;
  /// Replaces the progress of the job. `json` is JSON text of at most 1 MB, shown by `/status` as `output` while the
  /// job is IN_PROGRESS. Throws JobFailed if the text is not JSON or is longer.
  virtual void progress(std::string_view json) = 0;
  /// Adds a line to the job's own log. The host keeps the first 8 KB of a line.
  virtual void log(LogLevel level, std::string_view line) = 0;
};

/// A worker's handler, with one job at a time. The host creates, uses and deletes a handler on one thread.
class JOBQ_VISIBLE JobHandler : public abi::Versioned {
 public:
  virtual ~JobHandler() = default;

  /// Runs one job. `input` is the job's JSON object text; `input` and `context` are valid during the call. Returns the
  /// output as JSON text of any kind, at most 20 MB. Throws JobFailed, or any other exception, to fail the job; the
  /// host uses the handler again for the next job.
  virtual std::string run(std::string_view input, JobContext& context) = 0;
};

/// The worker for which HandlerFactory::make() creates a handler.
struct HandlerEnv {
  EndpointId endpoint;
  WorkerId worker;
  std::map<std::string, std::string> variables;  ///< the `env` of the endpoint
  std::string script{};  ///< name of the script of the image `lua/<script>`; empty for `plugin/<handler>`
};

/// The handler plugin: creates a handler for each worker. Any thread may call; several calls run at once.
class JOBQ_VISIBLE HandlerFactory : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::handler;

  /// Returns a new handler for the worker `env`, owned by the worker. `env` is valid during the call. The factory
  /// outlives the handler. Throws any std::exception if the worker cannot start; the host logs the reason and tries
  /// again after a pause of 1 s, and of twice as long each time, up to 30 s.
  virtual std::unique_ptr<JobHandler> make(const HandlerEnv& env) = 0;

  /// Returns one sentence with the reason why no worker can run the script, or an empty optional if a worker can. The
  /// host asks before it accepts an image; `script` is empty for `plugin/<handler>`. Factories without scripts keep the
  /// default. Any thread.
  virtual std::optional<std::string> fault(std::string_view script) const {
    if (script.empty()) return std::nullopt;
    return "this handler runs no scripts";
  }
};

}  // namespace jobq
