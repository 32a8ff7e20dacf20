// The addresses of a worker's calls (core/http/API.md, "Remote workers").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/client/http_session.h"
#include "jobq/job.h"

namespace jobq::worker {

/// The server, and the path of each call of a worker at an endpoint. Constant; any thread may call.
class CallAddresses {
 public:
  /// Returns the addresses below `<url>/v2/<endpoint>`. `ca` is the file with authorities of an https server, empty for
  /// those of the system. Throws CommandError(usage) if an argument is malformed.
  static CallAddresses ofEndpoint(const std::string& url, const EndpointId& endpoint, const WorkerId& worker,
                                  const std::string& ca);

  /// Returns the addresses in the variables RUNPOD_WEBHOOK_..., where `$ID` and `$RUNPOD_POD_ID` stand for ids. Throws
  /// CommandError(usage) if a variable is missing or malformed, or if the variables name several servers or endpoints.
  static CallAddresses ofVariables(const std::map<std::string, std::string>& variables, const WorkerId& worker,
                                   const std::string& ca);

  const cli::ServerAddress& server() const { return server_; }
  const EndpointId& endpoint() const { return endpoint_; }
  const WorkerId& worker() const { return worker_; }

  /// Returns the path of the call for at most `most` jobs. If `holdsJobs` is false, the server counts the jobs handed
  /// out to the worker as lost.
  std::string jobs(std::size_t most, bool holdsJobs) const;
  /// Returns the path of the call for the ids of jobs to stop.
  std::string stops() const;
  /// Returns the path of a sign of life. `jobs` are all jobs of the worker.
  std::string ping(const std::vector<JobId>& jobs) const;
  /// Returns the path for the result or the progress of a job. An id of a job needs no encoding (isIdentifier()).
  std::string result(const JobId& job) const;
  /// Returns the path for the results of several jobs; empty if the server is not known to have such a call.
  const std::string& results() const { return results_; }
  /// Returns the path for a chunk of a job. `first` is the server's number of the first piece.
  std::string chunk(const JobId& job, std::optional<std::uint64_t> first) const;

 private:
  CallAddresses(cli::ServerAddress server, EndpointId endpoint, WorkerId worker);

  cli::ServerAddress server_;
  EndpointId endpoint_;
  WorkerId worker_;
  // The path of the call for jobs around the name of the call. The id of the worker stands already in the second part.
  std::string beforeTake_;
  std::string behindTake_;
  // Paths with a query. In result_ and chunk_ `$ID` is the job.
  std::string result_;
  std::string results_;
  std::string chunk_;
  std::string ping_;
};

}  // namespace jobq::worker
