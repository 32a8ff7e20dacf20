#include "core/workers/remote/remote_news.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <variant>

#include "core/workers/pool/endpoint_shares.h"
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
  news.isTorn = numberOf(document, "torn") > 0;
  news.ping = numberOf(document, "ping");
  news.listed = attemptsOf(document, "listed");
  news.omitted = attemptsOf(document, "omitted");
  news.ended = attemptsOf(document, "ended");
  for (const auto& [job, attempt] : attemptsOf(document, "unknown")) news.unknown.insert(job);
  news.isPartial = numberOf(document, "partial") > 0;
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
  if (news.isTorn) out.member("torn", 1);
  if (news.ping > 0) out.member("ping", news.ping);
  if (!news.listed.empty()) out.member("listed", news.listed);
  if (!news.omitted.empty()) out.member("omitted", news.omitted);
  if (!news.ended.empty()) out.member("ended", news.ended);
  if (news.isPartial) out.member("partial", 1);
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

// Both functions leave out at most `excess` jobs of a kind that clients can make up, and return the number.
std::size_t cutUnknown(WorkerNews& news, std::size_t excess) {
  const std::size_t cut = std::min(excess, news.unknown.size());
  news.unknown.erase(news.unknown.begin(), std::next(news.unknown.begin(), static_cast<std::ptrdiff_t>(cut)));
  return cut;
}
std::size_t cutStops(WorkerNews& news, std::size_t excess) {
  std::size_t cut = 0;
  std::erase_if(news.stops, [&](const auto& stop) {
    const bool isCut = cut < excess && stop.second == 0;
    cut += isCut ? 1 : 0;
    return isCut;
  });
  return cut;
}

// Returns the news with at most a share for each endpoint, as far as possible.
std::map<RemoteWorkerKey, WorkerNews> boundedNews(std::map<RemoteWorkerKey, WorkerNews> workers) {
  CountsByEndpoint sizes;
  for (const auto& [key, news] : workers) sizes[key.endpoint] += sizeOf(news);
  const CountsByEndpoint shares = fairShares(sizes, kMostNews);
  for (const auto cut : {cutUnknown, cutStops}) {
    for (auto& [key, news] : workers) {
      std::size_t& size = sizes[key.endpoint];
      const std::size_t share = shares.at(key.endpoint);
      const std::size_t gone = size > share ? cut(news, size - share) : 0;
      if (gone == 0) continue;
      size -= gone;
      news.isPartial = true;
      news.shown.clear();  // the worker has shown more jobs than are said
    }
  }
  return workers;
}

}  // namespace

bool NodeNews::hasJobs() const {
  return std::ranges::any_of(
      workers, [](const auto& worker) { return !worker.second.jobs.empty() || !worker.second.stops.empty(); });
}

std::string writeNews(const NodeNews& news) {
  std::size_t size = 0;
  for (const auto& [key, worker] : news.workers) size += sizeOf(worker);
  const std::map<RemoteWorkerKey, WorkerNews> bounded =
      size > kMostNews ? boundedNews(news.workers) : std::map<RemoteWorkerKey, WorkerNews>();
  return json::object([&](json::ObjectWriter& out) {
    out.member("epoch", news.epoch);
    out.array("workers", [&](json::ArrayWriter& workers) {
      for (const auto& entry : size > kMostNews ? bounded : news.workers) {
        if (entry.second.isEmpty()) continue;
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
