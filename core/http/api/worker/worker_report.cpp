#include "core/http/api/worker/worker_report.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "jobq/json.h"

namespace jobq {
namespace {

constexpr std::size_t kMostKeys = 1'000;
constexpr std::size_t kInReport = 1;  ///< brackets around the member `error` of a report
constexpr std::size_t kInBatch = 2;   ///< the same in a batch
constexpr std::size_t kNoError = 0;   ///< a text without such a member

Failed unreadable(const std::string& why) { return {"the worker sent a result that " + why, ""}; }

bool isTrue(const json::Value& value) {
  return value.kind != json::Kind::null && value.raw != "false" && value.raw != "0" && value.raw != "\"\"";
}

std::string textOf(const json::Value& value) {
  return value.kind == json::Kind::string ? json::decode(value.raw) : std::string(value.raw);
}

std::variant<WorkerResult, WorkerProgress> reportOf(const json::Document& document, std::size_t maxOutput) {
  const auto output = document.find("output");
  const auto status = document.find("status");
  if (status && status->raw == "\"IN_PROGRESS\"") {
    return WorkerProgress{output ? std::string(output->raw) : std::string("null")};
  }
  const auto stopPod = document.find("stopPod");
  WorkerResult result{Completed{}, stopPod && stopPod->raw == "true"};
  if (output && output->raw.size() > maxOutput) {
    result.outcome = Failed{"the output has " + std::to_string(output->raw.size()) + " bytes, the limit is " +
                                std::to_string(maxOutput >> 20) + " MB: upload large results and return their address",
                            ""};
    return result;
  }
  std::string text(output ? output->raw : std::string_view());
  const auto error = document.find("error");
  if (error && isTrue(*error)) {
    result.outcome = Failed{textOf(*error), std::move(text)};
  } else {
    result.outcome = Completed{std::move(text)};
  }
  return result;
}

Failure tooManyElements(const char* kind) {
  return invalid("the body has more than " + std::to_string(kMostReports) + " " + kind +
                 ": send them in several calls");
}

Result<WorkerBatch> readLostJobs(const json::Document& body) {
  const auto member = body.find("lost");
  if (!member || member->kind != json::Kind::array) {
    return invalid("the body is not an array of results, nor an object with the array lost");
  }
  const auto list = std::get<json::Document>(json::read(member->raw, kMostReports + 1));
  if (list.elements.size() > kMostReports) return tooManyElements("lost jobs");
  WorkerBatch batch;
  for (const json::Value& element : list.elements) {
    auto job = json::toText(element);
    if (!job) return invalid("element " + std::to_string(batch.lost.size()) + " of lost is not the id of a job");
    batch.lost.push_back(*std::move(job));
  }
  return batch;
}

// Returns true if the text ends with the name `error` of a member and its colon.
bool endsWithError(std::string_view text) {
  const auto skipSpace = [&text] { text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1); };
  skipSpace();
  if (!text.ends_with(':')) return false;
  text.remove_suffix(1);
  skipSpace();
  return text.ends_with("\"error\"") && !text.ends_with("\\\"error\"");
}

// Replaces the tokens NaN, Infinity and -Infinity outside strings with null. A member `error` inside `errorDepth`
// brackets gets the token as a string instead, because Python takes the tokens for true, so the handler has reported an
// error.
void replaceNaN(std::string& text, std::size_t errorDepth) {
  if (text.find("NaN") == std::string::npos && text.find("Infinity") == std::string::npos) return;
  constexpr std::array<std::string_view, 3> kTokens{"NaN", "-Infinity", "Infinity"};
  std::string out;
  out.reserve(text.size() + 8);
  const std::string_view all = text;
  bool isInString = false;
  std::size_t depth = 0;  // of brackets; any number outside of JSON
  for (std::size_t i = 0; i < all.size();) {
    const auto token = std::find_if(kTokens.begin(), kTokens.end(),
                                    [&](std::string_view each) { return all.substr(i, each.size()) == each; });
    if (!isInString && token != kTokens.end()) {
      const bool isError = depth == errorDepth && endsWithError(all.substr(0, i));
      out.append(isError ? '"' + std::string(*token) + '"' : "null");
      i += token->size();
      continue;
    }
    if (!isInString && (all[i] == '{' || all[i] == '[')) ++depth;
    if (!isInString && (all[i] == '}' || all[i] == ']')) --depth;
    const std::size_t length = isInString && all[i] == '\\' ? 2 : 1;  // an escaped quote does not end a string
    if (all[i] == '"') isInString = !isInString;
    out.append(all.substr(i, length));
    i += length;
  }
  text.swap(out);
}

}  // namespace

std::variant<WorkerResult, WorkerProgress> readWorkerReport(std::string body, std::size_t maxOutput) {
  replaceNaN(body, kInReport);
  const auto read = json::read(body, kMostKeys);
  if (const auto* fault = std::get_if<json::Fault>(&read)) {
    return WorkerResult{unreadable("is not JSON: " + std::string(fault->reason)), false};
  }
  const auto& document = std::get<json::Document>(read);
  if (document.root.kind != json::Kind::object) return WorkerResult{unreadable("is not a JSON object"), false};
  return reportOf(document, maxOutput);
}

Result<WorkerBatch> readWorkerBatch(std::string body, std::size_t maxOutput) {
  replaceNaN(body, kInBatch);
  const auto read = json::read(body, kMostReports + 1);
  if (const auto* fault = std::get_if<json::Fault>(&read)) {
    return invalid("the body is not JSON: " + std::string(fault->reason));
  }
  const auto& list = std::get<json::Document>(read);
  if (list.root.kind != json::Kind::array) return readLostJobs(list);
  if (list.elements.size() > kMostReports) return tooManyElements("results");
  WorkerBatch batch;
  batch.reports.reserve(list.elements.size());
  for (const json::Value& element : list.elements) {
    const auto document = std::get<json::Document>(json::read(element.raw, kMostKeys));
    const auto id = document.find("id");
    auto job = id ? json::toText(*id) : std::nullopt;
    if (!job) {
      return invalid("element " + std::to_string(batch.reports.size()) + " is not an object with the id of its job");
    }
    batch.reports.push_back({*std::move(job), reportOf(document, maxOutput)});
  }
  return batch;
}

Result<WorkerChunk> readWorkerChunk(std::string body) {
  replaceNaN(body, kNoError);
  const auto read = json::read(body, kMostKeys);
  if (const auto* fault = std::get_if<json::Fault>(&read)) {
    return invalid("the worker sent a chunk that is not JSON: " + std::string(fault->reason));
  }
  const auto& document = std::get<json::Document>(read);
  const auto output = document.root.kind == json::Kind::object ? document.find("output") : std::nullopt;
  if (!output) return invalid("the worker sent a chunk that is not a JSON object with an output");
  const auto metrics = document.find("metrics");
  const bool hasMetrics = metrics && metrics->kind == json::Kind::object;
  return WorkerChunk{std::string(output->raw), hasMetrics ? std::string(metrics->raw) : std::string()};
}

}  // namespace jobq
