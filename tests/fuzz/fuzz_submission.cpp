// The validation of a job request's body against RapidJSON. A job by its outline alone is accepted, an invalid text is
// refused, and the kept bytes are the caller's own.
#include <cstdint>
#include <cstring>

#include "check.h"
#include "outline.h"
#include "submission_fixture.h"

namespace {

using namespace jobq;

bool isAbsent(const Outline& outline, const char* key) {
  const auto* field = outline.last(key);
  return field == nullptr || field->kind == Outline::Kind::null;
}

bool hasInput(const Outline& outline) {
  const auto* input = outline.last("input");
  return input != nullptr && input->kind == Outline::Kind::object;
}

/// Returns true if only the fields with rules of their own could still cause a refusal.
bool isJob(const Outline& outline) {
  return outline.valid() && outline.kind() == Outline::Kind::object && outline.deepest() <= json::kMaxDepth &&
         outline.fields().size() <= SubmissionFixture::kMostKeys && !outline.repeatsAKey() && hasInput(outline);
}

void checkKept(const JobSpec& job, const Outline& outline, const SubmissionFixture& fixture) {
  BELIEVE(job.input == outline.last("input")->raw);
  const bool noConfig = isAbsent(outline, "s3Config");
  BELIEVE(noConfig == job.s3Config.empty());
  if (!noConfig) BELIEVE(fixture.open(job.s3Config) == outline.last("s3Config")->raw);
  const auto* hook = outline.last(isAbsent(outline, "webhook") ? "webhookV2" : "webhook");
  BELIEVE(job.webhook == (hook == nullptr ? "" : hook->kind == Outline::Kind::null ? "" : hook->text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SubmissionFixture kFixture;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto result = kFixture.read(body, size % 2 == 1);
  const JobSpec* job = result ? &result->job : nullptr;
  // RapidJSON takes a NUL for the end.
  if (size > 0 && std::memchr(data, 0, size) != nullptr) {
    BELIEVE(job == nullptr);
    return 0;
  }
  const Outline outline(body);
  if (outline.unsure()) return 0;
  if (!isJob(outline)) {
    BELIEVE(job == nullptr);
    return 0;
  }
  const bool plain = isAbsent(outline, "policy") && isAbsent(outline, "webhook") && isAbsent(outline, "webhookV2") &&
                     isAbsent(outline, "s3Config");
  BELIEVE(job != nullptr || !plain);
  if (job != nullptr) checkKept(*job, outline, kFixture);
  return 0;
}
