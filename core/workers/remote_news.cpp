#include "core/workers/remote_news.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

std::optional<json::Document> documentOf(std::string_view text) {
  auto read = json::read(text);
  auto* const document = std::get_if<json::Document>(&read);
  return document == nullptr ? std::nullopt : std::optional(std::move(*document));
}

std::uint64_t numberOf(const json::Document& document, std::string_view name) {
  const auto value = document.find(name);
  const auto number = value ? json::toInteger(*value) : std::nullopt;
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

std::string textOf(const json::Document& document, std::string_view name) {
  const auto value = document.find(name);
  return value ? json::toText(*value).value_or("") : "";
}

AttemptMap attemptsOf(const json::Document& document, std::string_view name) {
  AttemptMap attempts;
  const auto value = document.find(name);
  const auto list = value ? documentOf(value->raw) : std::nullopt;
  if (!list) return attempts;
  for (const json::Member& member : list->members) {
    const auto attempt = json::toInteger(member.value, 0, UINT32_MAX);
    if (attempt) attempts[json::decode(member.key)] = static_cast<std::uint32_t>(*attempt);
  }
  return attempts;
}

std::map<std::string, std::uint64_t> numbersOf(const json::Document& document, std::string_view name) {
  std::map<std::string, std::uint64_t> numbers;
  const auto value = document.find(name);
  const auto list = value ? documentOf(value->raw) : std::nullopt;
  if (!list) return numbers;
  for (const json::Member& member : list->members) {
    const std::string key = json::decode(member.key);
    if (const std::uint64_t number = numberOf(*list, key); number != 0) numbers[key] = number;
  }
  return numbers;
}

WorkerNews workerOf(const json::Document& document) {
  WorkerNews news;
  news.jobs = attemptsOf(document, "jobs");
  news.stops = attemptsOf(document, "stops");
  news.isLeaving = numberOf(document, "leaving") > 0;
  news.isConnected = numberOf(document, "connected") > 0;
  news.ping = numberOf(document, "ping");
  news.listed = attemptsOf(document, "listed");
  news.omitted = attemptsOf(document, "omitted");
  news.ended = attemptsOf(document, "ended");
  for (const auto& [job, attempt] : attemptsOf(document, "unknown")) news.unknown.insert(job);
  news.asks = numberOf(document, "asks");
  news.shown = numbersOf(document, "shown");
  return news;
}

void writeWorker(json::ObjectWriter& out, const RemoteWorkerKey& key, const WorkerNews& news) {
  out.member("endpoint", key.endpoint);
  out.member("worker", key.worker);
  if (!news.jobs.empty()) out.member("jobs", news.jobs);
  if (!news.stops.empty()) out.member("stops", news.stops);
  if (news.isLeaving) out.member("leaving", 1);
  if (news.isConnected) out.member("connected", 1);
  if (news.ping > 0) out.member("ping", news.ping);
  if (!news.listed.empty()) out.member("listed", news.listed);
  if (!news.omitted.empty()) out.member("omitted", news.omitted);
  if (!news.ended.empty()) out.member("ended", news.ended);
  if (news.asks > 0) out.member("asks", news.asks);
  if (!news.shown.empty()) out.member("shown", news.shown);
  if (news.unknown.empty()) return;
  out.object("unknown", [&news](json::ObjectWriter& jobs) {
    for (const JobId& job : news.unknown) jobs.namedMember(job, 0);
  });
}

std::size_t sizeOf(const WorkerNews& news) {
  return 1 + news.jobs.size() + news.stops.size() + news.listed.size() + news.omitted.size() + news.ended.size() +
         news.unknown.size() + news.shown.size();
}

}  // namespace

bool NodeNews::hasJobs() const {
  return std::ranges::any_of(
      workers, [](const auto& worker) { return !worker.second.jobs.empty() || !worker.second.stops.empty(); });
}

std::string writeNews(const NodeNews& news) {
  std::size_t size = 0;
  return json::object([&](json::ObjectWriter& out) {
    out.member("epoch", news.epoch);
    out.array("workers", [&](json::ArrayWriter& workers) {
      for (const auto& entry : news.workers) {
        const std::size_t more = sizeOf(entry.second);
        if (entry.second.isEmpty() || size + more > kMostNews) continue;
        size += more;
        workers.object([&](json::ObjectWriter& each) { writeWorker(each, entry.first, entry.second); });
      }
    });
  });
}

NodeNews readNews(std::string_view text) {
  NodeNews news;
  const auto document = documentOf(text);
  if (!document) return news;
  news.epoch = numberOf(*document, "epoch");
  const auto value = document->find("workers");
  const auto workers = value ? documentOf(value->raw) : std::nullopt;
  if (!workers) return news;
  for (const json::Value& element : workers->elements) {
    const auto worker = documentOf(element.raw);
    if (!worker) continue;
    const RemoteWorkerKey key{textOf(*worker, "endpoint"), textOf(*worker, "worker")};
    if (!key.endpoint.empty() && !key.worker.empty()) news.workers[key] = workerOf(*worker);
  }
  return news;
}

}  // namespace jobq
