// Room 4 (reception): is this well-formed job welcome? A filter sees a job before it has an id.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "jobq/job.h"
#include "jobq/plugin.h"

namespace jobq {

/// The job at the door. The views live for the call.
struct AdmissionRequest {
  std::string_view endpoint;
  std::string_view apiKeyId;
  std::string_view input;  ///< JSON object text; do not decode it unless the filter must
  const JobPolicy& policy;
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
using Admission = std::variant<Accept, Reject, Replace>;

/// One call at a time per instance; the host keeps a pool. An exception answers the caller 500 and names the filter.
class JOBQ_VISIBLE AdmissionFilter : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::admissionFilter;

  [[nodiscard]] virtual Admission review(const AdmissionRequest& job) = 0;
};

}  // namespace jobq
