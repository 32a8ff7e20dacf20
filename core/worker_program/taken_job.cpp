#include "core/worker_program/taken_job.h"

#include <string_view>
#include <utility>
#include <variant>

#include "core/base/ids.h"
#include "jobq/json.h"

namespace jobq::worker {
namespace {

std::optional<json::Document> readDocument(std::string_view text) {
  auto read = json::read(text);
  if (auto* document = std::get_if<json::Document>(&read)) return std::move(*document);
  return std::nullopt;
}

std::optional<Millis> readTimeout(const json::Document& job) {
  const auto policy = job.find("policy");
  const auto document = policy ? readDocument(policy->raw) : std::nullopt;
  const auto timeout = document ? document->find("executionTimeout") : std::nullopt;
  const auto millis = timeout ? json::toInteger(*timeout, 1, 604'800'000) : std::nullopt;
  if (!millis) return std::nullopt;
  return Millis(*millis);
}

std::optional<TakenJob> readJob(std::string_view text) {
  const auto document = readDocument(text);
  if (!document) return std::nullopt;
  const auto id = document->find("id");
  const auto input = document->find("input");
  const auto name = id ? json::toText(*id) : std::nullopt;
  if (!name || !isIdentifier(*name) || !input) return std::nullopt;
  TakenJob job{*name, std::string(input->raw)};
  const auto s3Config = document->find("s3Config");
  if (s3Config && s3Config->kind == json::Kind::object) job.s3Config = s3Config->raw;
  job.executionTimeout = readTimeout(*document);
  return job;
}

}  // namespace

Result<std::vector<TakenJob>> readTakenJobs(const std::string& answer) {
  std::vector<TakenJob> jobs;
  const auto document = readDocument(answer);
  if (!document) return invalid("the server answered with a text that is not JSON");
  if (document->root.kind == json::Kind::null) return jobs;
  std::vector<json::Value> texts{document->root};
  if (document->root.kind == json::Kind::array) texts = document->elements;
  for (const json::Value& text : texts) {
    auto job = readJob(text.raw);
    if (!job)
      return invalid("the server answered with a job without input, or without an id of letters, digits, _ and -");
    jobs.push_back(*std::move(job));
  }
  return jobs;
}

std::vector<JobId> readStops(const std::string& answer) {
  std::vector<JobId> jobs;
  const auto document = readDocument(answer);
  const auto list = document ? document->find("jobsToStop") : std::nullopt;
  const auto ids = list ? readDocument(list->raw) : std::nullopt;
  if (!ids) return jobs;
  for (const json::Value& id : ids->elements) {
    if (auto text = json::toText(id)) jobs.push_back(*std::move(text));
  }
  return jobs;
}

std::optional<std::uint64_t> readNextChunk(const std::string& answer) {
  const auto document = readDocument(answer);
  const auto next = document ? document->find("next") : std::nullopt;
  const auto number = next ? json::toInteger(*next, 0, INT64_MAX) : std::nullopt;
  return number ? std::optional(static_cast<std::uint64_t>(*number)) : std::nullopt;
}

}  // namespace jobq::worker
