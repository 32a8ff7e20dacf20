// Contract of the admission stage: a filter accepts, changes or refuses a well-formed job before the job has an id. The
// plugin is a factory. The host owns the filters of the factory, as many as there are requests under review at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// The job under review. The views and references are valid during the call.
struct AdmissionRequest {
  std::string_view endpoint;
  std::string_view apiKeyId;
  std::string_view input;  ///< JSON object text; decoding costs time, and a filter decodes only if needed
  const JobPolicy& policy;
  const std::map<std::string, std::string>& env;  ///< the endpoint's `env`, with the settings of the filter
};

/// The job goes on unchanged.
struct Accept {};
/// The answer to the caller is 400 with this message, a sentence that names the field and the remedy.
struct Reject {
  std::string message;
};
/// The job goes on with another input (JSON object text) or another policy. An empty member leaves the value unchanged.
struct Replace {
  std::optional<std::string> input;
  std::optional<JobPolicy> policy;
};
/// The answer to the caller has this status and this message.
struct Refuse {
  int status = 400;  ///< 400, 403, 409, 413, 422 or 429; any other status is a failure of the filter
  std::string message;
  Millis retryAfter{0};  ///< for 429: time until the next try, rounded up to whole seconds in the answer, at least 1 s
};
/// The decision of a filter.
using Decision = std::variant<Accept, Reject, Replace, Refuse>;

/// A filter. The host keeps a pool of filters and makes one call at a time on each, on any thread. After an exception
/// the answer to the caller is 500 and names the filter.
class JOBQ_VISIBLE AdmissionFilter : public abi::Versioned {
 public:
  virtual ~AdmissionFilter() = default;

  /// Judges a job before the job is stored. `job` is valid during the call. Returns the decision of the filter; Reject
  /// is Refuse with status 400. Throws any std::exception if the filter fails. No two calls of a filter run at once.
  [[nodiscard]] virtual Decision review(const AdmissionRequest& job) = 0;
};

/// The filter plugin: creates filters. Any thread may call, several calls at once.
class JOBQ_VISIBLE AdmissionFilterFactory : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::admissionFilter;

  /// Returns a new filter, owned by the host; the factory outlives the filter. `script` is the name of the script of
  /// the filter `<script>`, and empty for `plugin/<filter>`. Throws any std::exception if the filter cannot be made;
  /// the answer to the caller is then 500.
  virtual std::unique_ptr<AdmissionFilter> make(std::string_view script) = 0;

  /// Returns one sentence with the reason why the script cannot run, or an empty optional if the script can. Factories
  /// without scripts keep the default. Any thread.
  virtual std::optional<std::string> fault(std::string_view script) const {
    if (script.empty()) return std::nullopt;
    return "this filter runs no scripts";
  }
};

}  // namespace jobq
