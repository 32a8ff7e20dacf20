#include "core/worker_program/call_addresses.h"

#include <Poco/String.h>

#include <string_view>
#include <utility>

#include "core/base/ids.h"
#include "core/client/exit_code.h"
#include "core/client/table_print.h"

namespace jobq::worker {
namespace {

using cli::CommandError;
using cli::ExitCode;
using cli::harmless;

constexpr std::string_view kTake = "/job-take/";
constexpr std::string_view kResult = "/job-done/";
constexpr std::string_view kResults = "/job-done-batch/";
constexpr std::string_view kChunk = "/job-stream/";
constexpr std::string_view kPing = "/ping/";
constexpr std::string_view kJob = "$ID";
constexpr std::string_view kWorker = "$RUNPOD_POD_ID";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Returns the path of a batch for the path of a result, which ends with the call, the worker and the job; empty for a
// path of another form.
std::string batchPath(const std::string& result) {
  const std::size_t job = result.find("/" + std::string(kJob));
  const std::size_t worker = job == std::string::npos || job == 0 ? std::string::npos : result.rfind('/', job - 1);
  if (worker == std::string::npos) return "";
  const std::string_view call = std::string_view(result).substr(0, worker + 1);
  if (!call.ends_with(kResult)) return "";
  return std::string(call.substr(0, call.size() - kResult.size())) + std::string(kResults) +
         result.substr(worker + 1, job - worker - 1) + result.substr(job + 1 + kJob.size());
}

/// An address split after the port.
struct SplitUrl {
  const char* variable;
  std::string server;
  std::string path;
};

void checkServer(const SplitUrl& address, const SplitUrl& take) {
  if (address.server == take.server) return;
  throw CommandError(ExitCode::usage, std::string("the variables ") + take.variable + " and " + address.variable +
                                          " name several servers, '" + harmless(take.server) + "' and '" +
                                          harmless(address.server) + "': set all of them anew");
}

// Refuses an address that is like the address for jobs, with an endpoint after `base`, and names another endpoint. An
// address of another form passes, because a worker may be given any address.
void checkEndpoint(const SplitUrl& address, std::string_view call, const std::string& base,
                   const EndpointId& endpoint) {
  if (!address.path.starts_with(base)) return;
  const std::size_t end = address.path.find('/', base.size());
  if (end == std::string::npos || address.path.compare(end, call.size(), call) != 0) return;
  const EndpointId named = address.path.substr(base.size(), end - base.size());
  if (named == endpoint || !isIdentifier(named)) return;
  throw CommandError(ExitCode::usage, std::string("the variable ") + address.variable + " is for the endpoint " +
                                          named + ", RUNPOD_WEBHOOK_GET_JOB for " + endpoint +
                                          ": set all of them anew");
}

// Parameters are appended with `&`, so every path gets a query.
SplitUrl splitVariable(const std::map<std::string, std::string>& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end()) {
    throw CommandError(ExitCode::usage, std::string("the variable ") + name +
                                            " is missing: set it, or name the server with --url and --endpoint");
  }
  const std::string& url = found->second;
  const std::size_t scheme = url.find("://");
  const std::size_t path = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  const std::string word = Poco::toLower(url.substr(0, scheme));
  if (path == std::string::npos || (word != "http" && word != "https")) {
    throw CommandError(ExitCode::usage, std::string("the variable ") + name +
                                            " is not an http:// or https:// address of a call: '" + harmless(url) +
                                            "'");
  }
  std::string text = url.substr(path);
  if (text.find('?') == std::string::npos) text += "?gpu=none";
  return {name, url.substr(0, path), std::move(text)};
}

}  // namespace

CallAddresses::CallAddresses(cli::ServerAddress server, EndpointId endpoint, WorkerId worker)
    : server_(std::move(server)), endpoint_(std::move(endpoint)), worker_(std::move(worker)) {}

CallAddresses CallAddresses::ofEndpoint(const std::string& url, const EndpointId& endpoint, const WorkerId& worker,
                                        const std::string& ca) {
  if (!isIdentifier(endpoint)) {
    throw CommandError(ExitCode::usage, "--endpoint takes the id of an endpoint, letters, digits, _ and -, not '" +
                                            harmless(endpoint) + "'");
  }
  CallAddresses made(cli::readServerAddress(url, ca), endpoint, worker);
  const std::string base = made.server_.prefix + "/v2/" + endpoint;
  made.beforeTake_ = base;
  made.behindTake_ = worker + "?gpu=none";
  made.result_ = base + "/job-done/" + worker + "/$ID?gpu=none";
  made.results_ = batchPath(made.result_);
  made.chunk_ = base + "/job-stream/" + worker + "/$ID?gpu=none";
  made.ping_ = base + "/ping/" + worker + "?gpu=none";
  return made;
}

CallAddresses CallAddresses::ofVariables(const std::map<std::string, std::string>& variables, const WorkerId& worker,
                                         const std::string& ca) {
  const SplitUrl take = splitVariable(variables, "RUNPOD_WEBHOOK_GET_JOB");
  const SplitUrl result = splitVariable(variables, "RUNPOD_WEBHOOK_POST_OUTPUT");
  const SplitUrl chunk = splitVariable(variables, "RUNPOD_WEBHOOK_POST_STREAM");
  const SplitUrl ping = splitVariable(variables, "RUNPOD_WEBHOOK_PING");
  for (const SplitUrl* each : {&result, &chunk, &ping}) checkServer(*each, take);
  const std::size_t call = take.path.substr(0, take.path.find('?')).rfind(kTake);
  const std::size_t begin = call == std::string::npos || call == 0 ? 0 : take.path.rfind('/', call - 1) + 1;
  const std::string base = take.path.substr(0, begin);
  const EndpointId endpoint = take.path.substr(begin, call - begin);
  if (base.empty() || !isIdentifier(endpoint)) {
    throw CommandError(ExitCode::usage, "the variable RUNPOD_WEBHOOK_GET_JOB has no endpoint before /job-take/: '" +
                                            harmless(take.path) + "'");
  }
  checkEndpoint(result, kResult, base, endpoint);
  checkEndpoint(chunk, kChunk, base, endpoint);
  checkEndpoint(ping, kPing, base, endpoint);
  CallAddresses made(cli::readServerAddress(take.server, ca), endpoint, worker);
  made.beforeTake_ = take.path.substr(0, call);
  made.behindTake_ = replaced(replaced(take.path.substr(call + kTake.size()), kWorker, worker), kJob, worker);
  made.result_ = replaced(result.path, kWorker, worker);
  made.results_ = batchPath(made.result_);
  made.chunk_ = replaced(chunk.path, kWorker, worker);
  made.ping_ = replaced(ping.path, kWorker, worker);
  return made;
}

std::string CallAddresses::jobs(std::size_t most, bool holdsJobs) const {
  return beforeTake_ + "/job-take-batch/" + behindTake_ + "&batch_size=" + std::to_string(most) +
         "&job_in_progress=" + (holdsJobs ? "1" : "0");
}

std::string CallAddresses::stops() const { return beforeTake_ + "/job-stop/" + behindTake_; }

std::string CallAddresses::ping(const std::vector<JobId>& jobs) const {
  std::string path = ping_;
  for (const JobId& job : jobs) path += (&job == &jobs.front() ? "&job_id=" : "%2C") + job;
  return path;
}

std::string CallAddresses::result(const JobId& job) const { return replaced(result_, kJob, job); }

std::string CallAddresses::chunk(const JobId& job, std::optional<std::uint64_t> first) const {
  return replaced(chunk_, kJob, job) + (first ? "&first=" + std::to_string(*first) : std::string());
}

}  // namespace jobq::worker
