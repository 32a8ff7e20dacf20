#include "core/http/api/exchange.h"

#include <Poco/String.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/http/api/error_response.h"

namespace jobq {
namespace {

constexpr std::size_t kFirstStep = 16UL << 10;
constexpr std::size_t kLargestStep = 1UL << 20;
/// The largest step of a body that had to wait. Each of its calls clears a whole step of memory, although few bytes
/// come.
constexpr std::size_t kLargestStepAfterPause = 64UL << 10;
constexpr std::size_t kMegabyte = 1UL << 20;
/// Bytes of a file in memory at a time. The client has 20 s and more for each piece (byte_stream.h).
constexpr std::size_t kFilePiece = 256UL << 10;

ApiResponse faultResponse(const ApiRequest& request, const Fault& fault) {
  if (fault.status == 503) return unavailable(request.path, fault.sentence);
  return errorResponse(request.path, fault.status, fault.sentence);
}

/// Raises the drawn memory of the request to `size` bytes. Returns false if the budget has no room.
bool drawUpTo(ApiRequest& request, std::size_t size, BodyMemory& bodyMemory) {
  if (size <= request.bodyMemory.amount()) return true;
  const std::string_view endpoint = request.endpoint ? std::string_view(request.endpoint->spec.id) : std::string_view();
  return request.bodyMemory.grow(bodyMemory, endpoint, size - request.bodyMemory.amount());
}

/// Draws on the budget as bytes come, because an announced length alone must take nothing from other bodies. Returns
/// false if the budget has no room for a body of `size` bytes.
bool draw(ApiRequest& request, std::size_t size, BodyMemory& bodyMemory) {
  return size <= kFreeBody || drawUpTo(request, size, bodyMemory);
}

/// Draws on the budget for the memory of the bytes so far: the number of bodies that wait for their rest is not bounded
/// by the threads, so each byte of theirs counts. Returns false if the budget has no room.
bool drawAll(ApiRequest& request, BodyMemory& bodyMemory) {
  const std::size_t ofFirstStep = std::min(kFirstStep, request.body.capacity());
  return drawUpTo(request, std::max(request.body.size(), ofFirstStep), bodyMemory);
}

/// Reads `size` bytes of the body. Returns fewer if the body ends, fails or pauses before.
std::size_t readUpTo(RequestExtension& request, char* to, std::size_t size, std::size_t limit) {
  std::size_t came = 0;
  while (came < size) {
    const std::size_t got = request.readBody(to + came, size - came, limit);
    if (got == 0) break;
    came += got;
  }
  return came;
}

std::string_view remedyOf(std::string_view path) {
  constexpr std::string_view kJobs[] = {"/v2/", "/sdk/v2/"};
  if (path.ends_with("/job-done-batch")) return "send fewer results at once";
  if (std::ranges::none_of(kJobs, [path](std::string_view mount) { return path.starts_with(mount); })) {
    return "send less";
  }
  if (path.ends_with("/run")) return "send the address of the large part in input, or call /runsync, which takes 20 MB";
  return "send the address of the large part instead";
}

}  // namespace

ApiResponse tooLarge(std::string_view path, std::size_t limit) {
  const std::string size =
      limit < kMegabyte ? std::to_string(limit >> 10) + " KB" : std::to_string(limit >> 20) + " MB";
  return errorResponse(path, 413, "the body is over the limit of " + size + ": " + std::string(remedyOf(path)));
}

// Poco keeps the lines of a name side by side.
std::string joinedLines(const Poco::Net::HTTPServerRequest& head, const std::string& name) {
  std::string joined;
  for (auto line = head.find(name); line != head.end() && Poco::icompare(line->first, name) == 0; ++line) {
    joined += (joined.empty() ? "" : ", ") + line->second;
  }
  return joined;
}

std::optional<ApiResponse> unreadableForm(const Poco::Net::HTTPServerRequest& head, std::string_view path) {
  static const std::string kMultipart = "multipart/";
  const std::string coding = joinedLines(head, "Content-Encoding");
  if (!coding.empty() && Poco::icompare(coding, "identity") != 0) {
    ApiResponse refusal = errorResponse(path, 415,
                                        "a body with Content-Encoding: " + clipped(coding) +
                                            " is not read here: send the body without Content-Encoding");
    refusal.headers.emplace_back("Accept-Encoding", "identity");
    return refusal;
  }
  if (Poco::icompare(head.getContentType().substr(0, kMultipart.size()), kMultipart) != 0) return std::nullopt;
  return errorResponse(path, 415,
                       "a multipart form is not read here: send a JSON object, and a file within the object as base64 "
                       "text or as a URL");
}

ApiResponse noBodyMemory(std::string_view path, const BodyMemory& memory) {
  return unavailable(path, limitReached("too many bytes of large bodies are being received", memory.whole(),
                                        "server.bodyMemory, a quarter for an endpoint") +
                               "; try again in a moment");
}

std::optional<ApiResponse> Exchange::readBody(ApiRequest& request, std::size_t limit, BodyMemory& bodyMemory) {
  const bool chunked = request_.getChunkedTransferEncoding();
  const auto announced =
      request_.hasContentLength() ? static_cast<std::size_t>(request_.getContentLength64()) : std::size_t{0};
  if (!chunked && announced == 0) return std::nullopt;
  std::string& body = request.body;
  const std::size_t largestStep = body.empty() ? kLargestStep : kLargestStepAfterPause;
  // The whole room at once avoids moves; pages of memory are touched only as bytes come.
  if (body.empty()) body.reserve(announced);
  for (;;) {
    const std::size_t had = body.size();
    if (had > limit) return tooLarge(request.path, limit);
    if (!chunked && had == announced) break;
    const std::size_t most = std::clamp(had, kFirstStep, largestStep);
    const std::size_t step = std::min(most, chunked ? limit + 1 - had : announced - had);
    if (!draw(request, std::min(had + step, limit), bodyMemory)) return noBodyMemory(request.path, bodyMemory);
    body.resize(had + step);
    const std::size_t came = readUpTo(extension_, body.data() + had, step, limit);
    body.resize(had + came);
    if (came < step) break;
  }
  if (isPaused() && !drawAll(request, bodyMemory)) return noBodyMemory(request.path, bodyMemory);
  // Threads do not bound the number of bodies of quick requests. There was room for the small body just before.
  if (!extension_.client().mayBlock()) (void)drawAll(request, bodyMemory);
  if (const auto& read = extension_.bodyResult(); !read) {
    const Fault& fault = read.failure();
    return fault.status == 413 ? tooLarge(request.path, limit) : faultResponse(request, fault);
  }
  if (body.size() > limit) return tooLarge(request.path, limit);
  return std::nullopt;
}

void Exchange::send(ApiResponse response) {
  extension_.discardBody();
  response_.setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(response.status));
  response_.setContentType("application/json");
  for (const auto& [name, value] : response.headers) response_.set(name, value);
  if (response.isOpen) {
    // A proxy must neither gather nor change the parts; nginx knows the second header only.
    response_.set("Cache-Control", "no-cache, no-transform");
    response_.set("X-Accel-Buffering", "no");
    sending_ = extension_.sendPart(std::move(response.body), false);
  } else if (response.file) {
    sendFile(*response.file);
  } else {
    sending_ = extension_.sendText(std::move(response.body), response.constant);
  }
}

void Exchange::sendPart(BodyPart part) { sending_ = extension_.sendPart(std::move(part.bytes), part.isLast); }

// The announced length is on its way when a read fails; the client sees the early end of the connection.
void Exchange::sendFile(const BodyFile& file) {
  response_.setContentLength64(static_cast<Poco::Int64>(file.size()));
  std::ostream& out = response_.send();
  std::vector<char> piece(kFilePiece);
  for (std::uint64_t left = file.size(); left > 0 && out.good();) {
    const ssize_t got = ::read(file.descriptor(), piece.data(), std::min<std::uint64_t>(piece.size(), left));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return abandon();
    out.write(piece.data(), got);
    left -= static_cast<std::uint64_t>(got);
  }
}

}  // namespace jobq
