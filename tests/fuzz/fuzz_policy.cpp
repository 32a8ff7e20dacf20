// A job's `policy` in an otherwise good body. RapidJSON finds the fields, and a second implementation checks the
// values, digit by digit.
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "check.h"
#include "outline.h"
#include "submission_fixture.h"

namespace {

using namespace jobq;
using Kind = Outline::Kind;

const std::set<std::string> kKnown{"executionTimeout", "ttl", "lowPriority", "priority"};

// Accepts a sign and digits, without point and exponent. -0 is 0.
std::optional<std::int64_t> integerOf(const Outline::Field& field) {
  if (field.kind != Kind::number || field.text.find_first_not_of("-0123456789") != std::string::npos ||
      field.text.size() > 12) {
    return std::nullopt;
  }
  return std::stoll(field.text);
}

/// Returns the expected value of the job; `good` becomes false if the field should be refused.
std::int64_t judgeNumber(const Outline& policy, const char* key, std::int64_t least, std::int64_t most,
                         std::int64_t without, bool& good) {
  const auto* field = policy.last(key);
  if (field == nullptr || field->kind == Kind::null) return without;
  const auto number = integerOf(*field);
  good = good && number && *number >= least && *number <= most;
  return number.value_or(0);
}

bool judgeFlag(const Outline& policy, bool& good) {
  const auto* field = policy.last("lowPriority");
  if (field == nullptr || field->kind == Kind::null) return false;
  good = good && field->kind == Kind::boolean;
  return field->text == "true";
}

void compare(const Outline& policy, const JobSpec* job) {
  bool good = policy.kind() == Kind::object || policy.kind() == Kind::null;
  good = good && policy.deepest() < json::kMaxDepth;  // the body adds one level
  good = good && policy.fields().size() <= SubmissionFixture::kMostKeys;
  good = good && !policy.repeatsAKey();
  for (const auto& field : policy.fields()) good = good && kKnown.contains(field.key);
  const auto timeout =
      judgeNumber(policy, "executionTimeout", 5'000, 604'800'000, SubmissionFixture::kOwnTimeout.count(), good);
  const auto ttl = judgeNumber(policy, "ttl", 10'000, 604'800'000, 86'400'000, good);
  const auto priority = judgeNumber(policy, "priority", -1'000, 1'000, 0, good);
  const bool low = judgeFlag(policy, good);
  BELIEVE((job != nullptr) == good);
  if (job == nullptr) return;
  BELIEVE(job->policy.executionTimeout.count() == timeout && job->policy.ttl.count() == ttl);
  BELIEVE(job->policy.priority == priority && job->policy.lowPriority == low);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const SubmissionFixture kFixture;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto result = kFixture.read("{\"input\":{},\"policy\":" + text + "}");
  const JobSpec* job = result ? &result->job : nullptr;
  if (text.find('\0') != std::string::npos) {
    BELIEVE(job == nullptr);
    return 0;
  }
  // A text that is no value by itself may become a value and further fields within the body.
  const Outline policy(text);
  if (policy.valid() && !policy.unsure()) compare(policy, job);
  return 0;
}
