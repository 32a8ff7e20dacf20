// Room 4 (reception): is this well-formed job welcome? A filter sees a job before it has an id. A factory is the
// plugin; the filters it makes are the host's, one for each request that is being judged at a time.
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

/// The job at the door. The views live for the call.
struct AdmissionRequest {
  std::string_view endpoint;
  std::string_view apiKeyId;
  std::string_view input;  ///< JSON object text; do not decode it unless the filter must
  const JobPolicy& policy;
  const std::map<std::string, std::string>& env;  ///< the endpoint's `env`: where a filter finds its settings
};

struct Accept {};
/// The caller is answered 400 with this message: one sentence that names the field and the remedy.
struct Reject {
  std::string message;
};
/// Goes on with other input (a JSON object text) or another policy; what is empty stays as it was.
struct Replace {
  std::optional<std::string> input;
  std::optional<JobPolicy> policy;
};
/// The caller is answered with this status and message.
struct Refuse {
  int status = 400;  ///< 400, 403, 409, 413, 422 or 429; any other is a failure of the filter
  std::string message;
  Millis retryAfter{0};  ///< with 429: when to try again; the answer has it in whole seconds, at least one
};
/// A filter's decision.
using Decision = std::variant<Accept, Reject, Replace, Refuse>;

/// One call at a time per instance, on any thread; the host keeps a pool. An exception answers the caller 500 and names
/// the filter.
class JOBQ_VISIBLE AdmissionFilter : public abi::Versioned {
 public:
  virtual ~AdmissionFilter() = default;

  /// Judges one job before the job is stored. Returns the decision of the filter; Reject is Refuse with status 400.
  /// Throws any std::exception if the filter fails. One thread at a time.
  [[nodiscard]] virtual Decision review(const AdmissionRequest& job) = 0;
};

/// Any thread.
class JOBQ_VISIBLE AdmissionFilterFactory : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::admissionFilter;

  /// `script`: of the filter `<script>`; empty for `plugin/<filter>`. Throwing answers the caller 500.
  virtual std::unique_ptr<AdmissionFilter> make(std::string_view script) = 0;

  /// Why this script cannot run, in one sentence; empty when it can. Of factories that run scripts.
  virtual std::string fault(std::string_view script) const {
    return script.empty() ? "" : "this filter runs no scripts";
  }
};

}  // namespace jobq
