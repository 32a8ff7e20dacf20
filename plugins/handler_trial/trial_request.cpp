#include "trial_request.h"

#include "jobq/error.h"
#include "jobq/fields.h"

namespace jobq::trial {

namespace {

constexpr std::int64_t kLongestWait = 7LL * 24 * 3600 * 1000;
constexpr std::int64_t kMostMegabytes = 65'536;
constexpr std::int64_t kMostChunks = 1'000'000;
constexpr std::int64_t kLargestChunk = 64LL * 1024 * 1024;

Millis readWait(const Fields& fields, std::string_view key) {
  return Millis(fields.integer(key, 0, kLongestWait).value_or(0));
}

Crash readCrash(const Fields& fields) {
  return fields
      .choice<Crash>("crash",
                     {{"segv", Crash::segv}, {"abort", Crash::abort}, {"exit", Crash::exit}, {"hang", Crash::hang}})
      .value_or(Crash::none);
}

TrialRequest readFields(const Fields& fields, std::string_view input) {
  TrialRequest request;
  for (const json::Value& value : fields.list("progress", "JSON values", Fields::kAnySize)) {
    request.progress.push_back(value.raw);
  }
  request.sleep = readWait(fields, "sleepMs");
  request.burn = readWait(fields, "burnMs");
  request.allocMb = fields.integer("allocMb", 0, kMostMegabytes).value_or(0);
  request.chunks = fields.integer("chunks", 0, kMostChunks).value_or(0);
  request.chunkBytes = fields.integer("chunkBytes", 0, kLargestChunk).value_or(0);
  request.chunkWait = readWait(fields, "chunkMs");
  request.ignoreStop = fields.flag("ignoreStop").value_or(false);
  request.log = fields.texts("log", Fields::kAnySize);
  request.failMessage = fields.text("fail");
  request.throwMessage = fields.text("throw");
  request.crash = readCrash(fields);
  const auto output = fields.value("output");
  request.output = output ? output->raw : input;
  return request;
}

}  // namespace

TrialRequest readTrial(std::string_view input) {
  try {
    return readFields(Fields("input", input, Fields::kAnySize), input);
  } catch (const FieldError& error) {
    throw JobFailed((error.key().empty() ? "input" : error.key()) + " of a trial " + error.problem());
  }
}

}  // namespace jobq::trial
