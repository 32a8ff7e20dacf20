// Room 9 (craftsman): the work itself. A factory is the plugin; each worker owns one handler made by it.
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

/// What a handler may ask and tell while it runs one job. Owned by the host, valid until run() returns; the thread that
/// runs the job only. Reports of a job that was cancelled, timed out or lost are dropped without an error: the stop
/// token is how a handler learns of that.
class JobContext {
 public:
  virtual ~JobContext() = default;

  virtual const JobId& id() const = 0;
  /// 1 for the first run of a job; grows with every further one.
  virtual std::uint32_t attempt() const = 0;
  /// Fires on cancel, execution timeout, expiry and shutdown. A handler that ignores it keeps its thread until it ends
  /// by itself: a thread cannot be killed.
  virtual std::stop_token stopToken() const = 0;
  /// When the execution timeout will strike, on the server's clock.
  virtual Instant deadline() const = 0;
  /// The job's `s3Config` object as JSON text; empty for none. A secret: never log it, never put it in an output.
  virtual std::string_view s3Config() const = 0;

  /// Hands out one piece of output while the job runs (`/stream`). Both are JSON text; `metrics` may be empty.
  /// Throws JobFailed when a text is not JSON or the job's chunks exceed their total limit.
  virtual void emit(std::string_view chunk, std::string_view metrics = {}) = 0;
  /// JSON text that `/status` shows as `output` while the job is IN_PROGRESS. The last report wins.
  virtual void progress(std::string_view json) = 0;
  /// A line for this job's own log. Of a longer one the first 8 KB are kept.
  virtual void log(LogLevel level, std::string_view line) = 0;
};

/// Runs one job at a time: an instance is a worker. It is made, used and deleted on one thread.
class JOBQ_VISIBLE JobHandler : public abi::Versioned {
 public:
  virtual ~JobHandler() = default;

  /// `input` is the job's JSON object text, valid for the call. Returns the output as JSON text (any JSON value).
  /// Throws JobFailed, or anything else, to fail the job; the handler is used again for the next one.
  virtual std::string run(std::string_view input, JobContext& context) = 0;
};

/// What a worker is made for.
struct HandlerEnv {
  EndpointId endpoint;
  WorkerId worker;
  std::map<std::string, std::string> variables;  ///< the endpoint's `env`
  std::string script{};                          ///< of the image `lua/<script>`; empty for `plugin/<handler>`
};

/// Any thread; several workers are made at once. Throwing from make() means that the worker does not start; the host
/// logs the reason and tries again later.
class JOBQ_VISIBLE HandlerFactory : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::handler;

  virtual std::unique_ptr<JobHandler> make(const HandlerEnv& env) = 0;

  /// Why no worker can run this script, in one sentence; empty when it can. Of factories that run scripts.
  virtual std::string fault(std::string_view script) const {
    return script.empty() ? "" : "this handler runs no scripts";
  }
};

}  // namespace jobq
