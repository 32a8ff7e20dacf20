// /stream: returns the output of a running job chunk by chunk (core/decisions/jobs.md).
#include <iterator>
#include <limits>

#include "core/http/api/error_response.h"
#include "core/http/api/queue/event_stream.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/jobs/chunk_feed.h"
#include "jobq/json_writer.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

constexpr Millis kHold{5'000};
constexpr Range kOffsets{0, std::int64_t{1} << 53};

// An answer carries at most 8 MB of chunks. Chunks are requested in pieces of 1 MB, which every answer may hold:
// chunks handed out by the storage cannot be put back when memory runs out.
constexpr std::size_t kPiece = 1UL << 20;
constexpr std::size_t kPieces = 8;

// Bytes of chunks between two parts of an event stream. With ids and names, chunks of a single byte become a megabyte.
constexpr std::size_t kEventPage = 16UL << 10;

using Ask = ChunkAsk;

Result<Ask> readAsk(const QueueDeps& deps, const ApiRequest& request) {
  Ask ask{jobOf(request), {}, kPiece};
  const auto wait = readWait(deps, request, kHold);
  if (!wait) return wait.failure();
  ask.wait = *wait;
  const auto offset = readNumber(request, "offset", kOffsets, OutOfRange::refuse, 0);
  if (!offset) return offset.failure();
  // A HEAD request must not consume chunks, because its answer carries none.
  if (request.query.contains("offset") || request.method == "HEAD") {
    ask.offset = static_cast<std::uint64_t>(*offset);
  }
  return ask;
}

// Appends chunks present already. Never waits.
void addMore(const QueueDeps& deps, ApiRequest& request, const Ask& ask, ChunkPage& page) {
  for (std::size_t piece = 1; page.more && piece < kPieces; ++piece) {
    if (!request.room.draw((piece + 1) * kPiece)) return;
    std::optional<ChunkPage> next;
    try {
      next = deps.jobs.chunks({ask.key, ask.offset ? std::optional(page.next) : std::nullopt, kPiece});
    } catch (const StorageError&) {
      return;  // the chunks read so far count as handed out and have to be sent
    }
    if (!next) return;
    // The job went back to the queue and began again: the chunks of its earlier attempt are void.
    if (next->attempt != page.attempt) {
      if (ask.offset) return;  // `next` begins at the position where the old attempt ended
      page.chunks.clear();
    }
    std::move(next->chunks.begin(), next->chunks.end(), std::back_inserter(page.chunks));
    next->chunks = std::move(page.chunks);
    page = std::move(*next);
  }
}

void writeChunk(json::ObjectWriter& out, const Chunk& chunk) {
  out.raw("output", chunk.output);
  if (!chunk.metrics.empty()) out.raw("metrics", chunk.metrics);
  if (chunk.partial) out.member("partial", true);
}

void writeChunks(json::ArrayWriter& out, const std::vector<Chunk>& chunks) {
  for (const Chunk& chunk : chunks) {
    out.object([&chunk](json::ObjectWriter& item) { writeChunk(item, chunk); });
  }
}

// Returns memory for the text of the chunks: a growing text is there twice at each move.
std::string roomFor(const std::vector<Chunk>& chunks) {
  constexpr std::size_t kFrame = 64;
  std::size_t bytes = 2 * kFrame;
  for (const Chunk& chunk : chunks) bytes += chunk.output.size() + chunk.metrics.size() + kFrame;
  std::string text;
  text.reserve(bytes);
  return text;
}

// Returns the error of a failed job for the object, because SDKs show the error to their users; empty for other jobs.
// If the storage fails here, the chunks already read are sent without the error.
std::string failureText(const QueueDeps& deps, const JobKey& key, JobState state) {
  if (state != JobState::failed && state != JobState::timedOut) return {};
  try {
    NoOutputRoom none;
    const std::optional<Job> job = deps.jobs.find(key, &none).job;
    return job ? job->error : std::string();
  } catch (const StorageError&) {
    return {};
  }
}

/// A call of /stream, which waits for the next chunks.
class AwaitedStream final : public PendingCall {
 public:
  AwaitedStream(const QueueDeps& deps, Ask ask, bool asObject)
      : deps_(deps),
        slot_(deps, ask.wait),
        ask_(withWait(std::move(ask), slot_.wait)),
        asObject_(asObject),
        wait_(deps.jobs.awaitChunks(ask_)) {}

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    auto result = wait_->poll(waitingCaller(request));
    if (!result) return std::nullopt;
    return answer(request, *std::move(result));
  }

 private:
  static Ask withWait(Ask ask, Millis wait) {
    ask.wait = wait;
    return ask;
  }
  ApiResponse answer(ApiRequest& request, ChunkWait::Result result) const;

  const QueueDeps& deps_;
  const WaitSlot slot_;
  const Ask ask_;
  const bool asObject_;
  const std::unique_ptr<ChunkWait> wait_;
};

ApiResponse AwaitedStream::answer(ApiRequest& request, ChunkWait::Result result) const {
  // A client following a stream asks again at once, and the server decides the frequency: a call that waited is not
  // counted. Any other call is counted without a refusal, even if other calls have used up the rate meanwhile: the
  // chunks are already consumed, so the answer has to carry the chunks.
  if (result.hasWaited) {
    request.permit.skipCounting();
  } else {
    (void)countWellFormed(request);
  }
  std::optional<ChunkPage>& page = result.page;
  if (!page) return noJob(request);
  if (result.hasRoom) addMore(deps_, request, ask_, *page);
  // The end of a job is reported only with its last chunks: some clients stop asking when the end is reported.
  const bool hasMore = page->more || !result.hasRoom;
  const JobState state = hasMore && terminal(page->state) ? JobState::inProgress : page->state;
  ApiResponse response{200, roomFor(page->chunks)};
  const auto write = [&page](json::ArrayWriter& out) { writeChunks(out, page->chunks); };
  if (asObject_) {
    const std::string error = failureText(deps_, ask_.key, state);
    json::appendObject(response.body, [&](json::ObjectWriter& out) {
      out.member("status", nameOf(state));
      out.array("stream", write);
      if (!error.empty()) out.member("error", error);
    });
  } else {
    json::appendArray(response.body, write);
  }
  page->chunks = {};
  request.room.noteText(response.body.size());
  response.headers = {{"X-Job-Status", std::string(nameOf(state))}, {"X-Job-Attempt", std::to_string(page->attempt)}};
  return response;
}

std::string statusJson(JobState state, const std::string& error) {
  return json::object([&](json::ObjectWriter& out) {
    out.member("status", nameOf(state));
    if (!error.empty()) out.member("error", error);
  });
}

/// The answer of /stream as a stream of events. Reads with a position of its own.
class ChunkEvents final : public JobEventStream {
 public:
  ChunkEvents(const QueueDeps& deps, Budget::Reservation place, const JobKey& key, const ChunkPosition& from)
      : JobEventStream(deps, std::move(place), key), feed_(deps.jobs.followChunks(key, from)) {}

 private:
  bool advance(ApiRequest& request, Instant until) override {
    const auto result = feed_->poll(until, waitingCaller(request), kEventPage);
    if (!result) return false;
    if (result->isOver) {
      feed_->readAgain();  // the storage may have failed before
      noteOver(until);
    } else if (!result->page) {
      endStream();
    } else if (result->hasRestarted) {
      events().add("restart", "", statusJson(result->page->state, ""));
    } else if (result->page->chunks.empty()) {
      addEnd(result->page->state);
    } else {
      addChunks(*result->page);
    }
    return true;
  }

  void addChunks(const ChunkPage& page) {
    std::uint64_t number = page.next - page.chunks.size();
    for (const Chunk& chunk : page.chunks) {
      const std::string id = std::to_string(page.attempt) + "-" + std::to_string(number++);
      events().add("", id, json::object([&chunk](json::ObjectWriter& out) { writeChunk(out, chunk); }));
    }
  }

  void addEnd(JobState state) {
    events().add("end", "", statusJson(state, failureText(deps(), key(), state)));
    endStream();
  }

  const std::unique_ptr<ChunkFeed> feed_;
};

// Returns the place where the events begin: behind the last event of the client, else at the parameter `offset`. An id
// that no chunk of the job has had counts as none.
ChunkPosition firstPosition(const QueueDeps& deps, const ApiRequest& request, const Ask& ask) {
  const ChunkPosition start{0, ask.offset.value_or(0)};
  const auto last = readNumberPair(request.lastEventId);
  if (!last || last->first == 0 || last->first > std::numeric_limits<std::uint32_t>::max()) return start;
  const ChunkPosition behind{static_cast<std::uint32_t>(last->first), static_cast<std::uint64_t>(last->second) + 1};
  constexpr std::size_t kOneChunk = 1;  // byte: a page has at least one chunk
  const auto page = deps.jobs.chunks({ask.key, behind.next - 1, kOneChunk});
  if (!page || page->attempt < behind.attempt) return start;
  return page->attempt == behind.attempt && page->chunks.empty() ? start : behind;
}

RouteResult chunkEvents(const QueueDeps& deps, ApiRequest& request, const Ask& ask) {
  Budget::Reservation place;
  if (auto refusal = admitEventStream(deps, request, place)) return *std::move(refusal);
  const ChunkPosition from = firstPosition(deps, request, ask);
  return begin(std::make_unique<ChunkEvents>(deps, std::move(place), ask.key, from), request);
}

RouteResult stream(const QueueDeps& deps, ApiRequest& request, bool asObject) {
  auto ask = readAsk(deps, request);
  if (!ask) return badRequest(request, ask.failure());
  if (asksForEvents(request)) return chunkEvents(deps, request, *ask);
  return begin(std::make_unique<AwaitedStream>(deps, *std::move(ask), asObject), request);
}

}  // namespace

RouteResult streamArray(const QueueDeps& deps, ApiRequest& request) { return stream(deps, request, false); }

RouteResult streamObject(const QueueDeps& deps, ApiRequest& request) { return stream(deps, request, true); }

}  // namespace jobq
