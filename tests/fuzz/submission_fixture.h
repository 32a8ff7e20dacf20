// The validation of submissions for fuzz targets: one endpoint, one secret key, and the properties of every answer.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "check.h"
#include "core/base/result.h"
#include "core/base/secret_box.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/submission.h"
#include "jobq/job.h"
#include "jobq/json.h"
#include "jobq/time.h"

namespace jobq {

class SubmissionFixture {
 public:
  SubmissionFixture() : secrets_(keyFile()) {
    std::filesystem::remove(keyFile());
    endpoint_.spec.id = "ep";
    endpoint_.spec.executionTimeout = kOwnTimeout;
  }

  /// Reads a submission and checks the answer: no crash, and no unreadable answer.
  Result<ReadSubmission> read(std::string_view body, bool sync = false) const {
    SubmissionRules rules{secrets_};
    rules.ignoresNearKeys = true;  // the fuzzers know only the keys of a job
    auto result =
        readSubmission(std::string(body), endpoint_, "key", sync ? std::optional(kWaitDefault) : std::nullopt, rules);
    if (!result) {
      checkSentence(result.failure().message());
    } else {
      checkJob(result->job, sync);
    }
    return result;
  }
  std::string open(const std::string& sealed) const { return secrets_.open(sealed); }

  static constexpr Millis kOwnTimeout{4'242};      ///< the endpoint's; no caller may ask for it
  static constexpr std::size_t kMostKeys = 1'000;  ///< in a body, and in an object inside

 private:
  static std::filesystem::path keyFile() {
    return std::filesystem::temp_directory_path() / ("jobq-fuzz-" + std::to_string(getpid()) + ".key");
  }

  // DEL is no control character of JSON: a quoted key may hold DEL.
  static void checkSentence(const std::string& text) {
    BELIEVE(!text.empty() && text.size() <= 500);
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t length = json::detail::utf8Length(std::string_view(text).substr(i, 4));
      BELIEVE(length > 0 && static_cast<unsigned char>(text[i]) >= 0x20);
      i += length;
    }
  }

  static bool hasShape(std::string_view id, std::string_view shape) {
    if (id.size() != shape.size()) return false;
    for (std::size_t i = 0; i < id.size(); ++i) {
      const std::string_view allowed = shape[i] == 'x'   ? "0123456789abcdef"
                                       : shape[i] == 'v' ? "89ab"
                                                         : shape.substr(i, 1);
      if (allowed.find(id[i]) == std::string_view::npos) return false;
    }
    return true;
  }

  static void checkJob(const JobSpec& job, bool sync) {
    BELIEVE(hasShape(
        job.id, sync ? "sync-xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx-u1" : "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx-u1"));
    BELIEVE(job.input.front() == '{' && json::valid(job.input));
    const auto timeout = job.policy.executionTimeout.count();
    BELIEVE(job.policy.executionTimeout == kOwnTimeout || (timeout >= 5'000 && timeout <= 604'800'000));
    BELIEVE(job.policy.ttl.count() >= 10'000 && job.policy.ttl.count() <= 604'800'000);
    BELIEVE(job.policy.priority >= -1'000 && job.policy.priority <= 1'000);
    BELIEVE(job.retention == (sync ? Millis(60'000) : Millis(1'800'000)));
    BELIEVE(job.webhook.empty() || (job.webhook.size() >= 8 && job.webhook.size() <= 8192));
  }

  SecretBox secrets_;
  Endpoint endpoint_;
};

}  // namespace jobq
