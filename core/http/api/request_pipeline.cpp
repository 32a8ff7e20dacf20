#include "core/http/api/request_pipeline.h"

#include <Poco/String.h>

#include <chrono>
#include <string>
#include <utility>

#include "core/auth/authorization.h"
#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/http/api/error_response.h"
#include "core/http/api/event_text.h"
#include "core/http/api/exchange.h"
#include "core/http/api/nearest_route.h"
#include "core/http/api/target.h"
#include "core/http/transport/blocking_request.h"
#include "core/jobs/admission.h"
#include "core/jobs/later_submission.h"
#include "jobq/byte_order_mark.h"

namespace jobq {
namespace {

constexpr const char* kNoException = "a plugin threw an exception that is not a std::exception";

ApiResponse storageFault(const ApiRequest& apiRequest, const StorageError& error) {
  return unavailable(apiRequest.path, std::string("the storage cannot serve this request now: ") + error.what());
}

/// Time for which a check of the key holds while a call waits or sends events: such a call may go on so much longer
/// than a new call with the key is refused.
constexpr std::chrono::milliseconds kKeyHolds{500};

bool acceptsEvents(const RequestPipeline::Head& head) {
  static const std::string kAccept = "Accept";
  for (auto line = head.find(kAccept); line != head.end() && Poco::icompare(line->first, kAccept) == 0; ++line) {
    if (acceptsEventStream(line->second)) return true;
  }
  return false;
}

}  // namespace

// The stages that need only the head, in their order. The first refusal is the answer.
const RequestPipeline::NamedStage RequestPipeline::kStages[] = {
    {&RequestPipeline::parseTarget, "an unreadable target cannot be judged"},
    {&RequestPipeline::findRoute, "a path that does not exist needs no key"},
    {&RequestPipeline::authenticate, "authentication: before an answer tells of endpoints or jobs"},
    {&RequestPipeline::findEndpoint, "an unknown endpoint is named to authenticated callers only"},
    {&RequestPipeline::limitRate,
     "rate limiting: before a byte of the body is read, and for authenticated callers only"},
    {&RequestPipeline::checkBody, "a body of an unknown form, too large, or without room is refused unread"},
};
// The later stages begin in the route, with the validation of the submission.

namespace {

// Counts a call that the route has not counted (queue_calls.h): a malformed call, or a call of a route that leaves the
// counting to the pipeline. An answer 503 does not count: the server failed before it understood the call.
void countResponse(ApiRequest& apiRequest, ApiResponse& response) {
  if (apiRequest.permit.isCounted() || response.status == 503) return;
  if (response.status != 400 && response.status != 408 && response.status != 413 && response.status != 415) {
    (void)apiRequest.permit.count(apiRequest.rateLimitStatus);
    return;
  }
  const auto counted = apiRequest.permit.countMalformed();
  if (counted) return;
  const RateLimitGate::Refused& refused = counted.failure();
  apiRequest.rateLimitStatus = refused.rateLimitStatus;
  response = tooMany(apiRequest.path, refused.sentence, refused.rateLimitStatus->retryAfter);
}

/// Greatest body of a quick request in bytes. Larger bodies take long to judge.
constexpr std::size_t kQuickBody = 16UL << 10;

/// Returns true if the reactor thread may serve the request. Filters may take long, and so may bodies of unknown
/// length.
bool isQuickRequest(const RequestPipeline::Head& head, const RequestPipeline::RequestContext& context,
                    BodyMemory& memory) {
  if (context.refusal) return context.refusals == nullptr;
  if ((!context.route->isQuick && !context.route->isProbe) ||
      (context.apiRequest.endpoint && !context.apiRequest.endpoint->filters.empty())) {
    return false;
  }
  const auto length = head.hasContentLength() ? static_cast<std::size_t>(head.getContentLength64()) : std::size_t{0};
  return !head.getChunkedTransferEncoding() && length <= kQuickBody &&
         memory.hasRoom(context.apiRequest.endpoint ? context.apiRequest.endpoint->spec.id : "", length);
}

class PipelineHandler final : public RequestHandler {
 public:
  PipelineHandler(RequestPipeline& pipeline, RequestPipeline::RequestContext context, bool isQuick)
      : pipeline_(pipeline), context_(std::move(context)), isQuick_(isQuick) {}

  void handleRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) override {
    serveExtended(request, response, pipeline_.threadWaits(), [&](RequestExtension& extension) {
      return pipeline_.serve(context_, {request, response, extension});
    });
  }

  bool isQuick() const noexcept override { return isQuick_; }

 private:
  RequestPipeline& pipeline_;
  RequestPipeline::RequestContext context_;
  const bool isQuick_;
};

}  // namespace

RequestHandler* RequestPipeline::createRequestHandler(const Head& request) {
  RequestContext context = checkHead(request);
  if (context.needsThread) return nullptr;
  // Poco's server sends `100 Continue` only if the response has the status 200.
  using Status = Poco::Net::HTTPResponse::HTTPStatus;
  if (context.refusal) request.response().setStatus(static_cast<Status>(context.refusal->status));
  const bool isProbe = context.route != nullptr && context.route->isProbe;
  const bool isQuick = (isProbe || makesQuickly()) && isQuickRequest(request, context, bodyMemory_);
  return new PipelineHandler(*this, std::move(context), isQuick);
}

bool RequestPipeline::makesQuickly() const noexcept { return later_.arePossible(); }

void RequestPipeline::endTurn() noexcept { later_.announce(); }

std::string RequestPipeline::errorBody(std::string_view sentence) const {
  return errorResponse("", 400, sentence).body;
}

RequestPipeline::RequestContext RequestPipeline::checkHead(const Head& request) {
  RequestContext context;
  if (const auto* extension = RequestExtension::of(request)) context.mayBlock = extension->client().mayBlock();
  try {
    for (const NamedStage& stage : kStages) {
      (this->*stage.stage)(request, context);
      if (context.refusal || context.needsThread) break;
    }
  } catch (const StorageError& error) {
    context.refusal = storageFault(context.apiRequest, error);
  } catch (const std::exception& error) {
    context.refusal = ownFault(context.apiRequest, error.what());
  } catch (...) {
    context.refusal = ownFault(context.apiRequest, kNoException);
  }
  return context;
}

void RequestPipeline::parseTarget(const Head& head, RequestContext& context) {
  context.apiRequest.method = head.getMethod();
  // The target `*` means the server as a whole (RFC 9110, 9.3.7); the answer serves as a ping.
  if (head.getURI() == "*") {
    context.refusal = ApiResponse{200, "{}", {{"Allow", "GET, HEAD, POST, PATCH, DELETE, OPTIONS"}}};
    return;
  }
  auto target = readTarget(head.getURI());
  if (!target) {
    context.refusal = errorResponse(head.getURI(), 400, target.failure().message());
    context.refusals = router_.refusalsOf(head.getURI().substr(0, head.getURI().find('?')));
    return;
  }
  context.apiRequest.path = std::move(target->path);
  context.apiRequest.query = std::move(target->query);
}

void RequestPipeline::findRoute(const Head& head, RequestContext& context) {
  ApiRequest& apiRequest = context.apiRequest;
  if (head.has("Idempotency-Key")) apiRequest.idempotencyKey = joinedLines(head, "Idempotency-Key");
  apiRequest.acceptsEvents = acceptsEvents(head);
  if (apiRequest.acceptsEvents) apiRequest.lastEventId = head.get("Last-Event-ID", "");
  auto found = router_.find(apiRequest.method, apiRequest.path);
  if (auto* match = std::get_if<Router::Match>(&found)) {
    context.route = match->route;
    context.refusals = match->route->refusals.get();
    apiRequest.params = std::move(match->params);
    if (match->route->queryIsPath) apiRequest.params.insert(apiRequest.query.begin(), apiRequest.query.end());
  } else if (const auto* wrong = std::get_if<Router::WrongMethod>(&found)) {
    if ((context.refusal = answerPreflight(head, wrong->allow))) return;
    context.refusal =
        errorResponse(apiRequest.path, 405, clipped(apiRequest.method) + " is not allowed here: use " + wrong->allow);
    context.refusal->headers.emplace_back("Allow", wrong->allow);
  } else {
    context.refusals = router_.refusalsOf(apiRequest.path);
    const std::string near = nearestRoute(router_, apiRequest.method, apiRequest.path);
    context.refusal =
        errorResponse(apiRequest.path, 404,
                      "there is nothing at " + clipped(apiRequest.path) +
                          (near.empty() ? ": GET /openapi.json lists the routes" : "; the nearest route is " + near));
  }
}

// A browser sends a preflight before a page's call to another origin, and sends no key with the preflight.
std::optional<ApiResponse> RequestPipeline::answerPreflight(const Head& head, const std::string& allow) const {
  if (!cors_.enabled() || head.getMethod() != "OPTIONS" || !head.has("Access-Control-Request-Method")) {
    return std::nullopt;
  }
  return cors_.preflight(head.get("Origin", ""), allow, head.get("Access-Control-Request-Headers", ""));
}

void RequestPipeline::authenticate(const Head& head, RequestContext& context) {
  if (context.route->scope == Scope::none) return;
  if ((context.needsThread = !context.mayBlock && !keys_.isCurrent())) return;
  const auto endpoint = context.apiRequest.params.find("endpoint");
  const std::string authorization = head.get("Authorization", "");  // the default is a temporary
  context.apiRequest.key = keys_.authenticate(authorization, context.route->scope,
                                              endpoint == context.apiRequest.params.end() ? "" : endpoint->second);
  if (context.apiRequest.key) return;
  context.refusal = unauthorized(context.apiRequest.path, describeRefusedKey(authorization));
}

void RequestPipeline::findEndpoint(const Head&, RequestContext& context) {
  const auto name = context.apiRequest.params.find("endpoint");
  if (name == context.apiRequest.params.end()) return;
  context.apiRequest.endpoint = endpoints_.find(name->second);
  if (context.apiRequest.endpoint) return;
  context.refusal = errorResponse(context.apiRequest.path, 404,
                                  "there is no endpoint " + clipped(name->second) + ": check the id in the path");
}

void RequestPipeline::limitRate(const Head&, RequestContext& context) {
  ApiRequest& apiRequest = context.apiRequest;
  if (!context.route->operation || !apiRequest.endpoint) return;
  const auto& spec = apiRequest.endpoint->spec;
  const RateLimitGate::OwnLimits own{spec.limits, apiRequest.endpoint->maxQueued()};
  auto entered = context.mayBlock ? std::optional(rates_.enter(spec.id, *context.route->operation, own))
                                  : rates_.enterKnown(spec.id, *context.route->operation, own);
  if ((context.needsThread = !entered)) return;
  auto& passed = *entered;
  if (!passed) {
    const RateLimitGate::Refused& refused = passed.failure();
    apiRequest.rateLimitStatus = refused.rateLimitStatus;
    context.refusal = tooMany(apiRequest.path, refused.sentence,
                              refused.rateLimitStatus ? refused.rateLimitStatus->retryAfter : Millis(0));
    return;
  }
  apiRequest.permit = std::move(passed->permit);
  apiRequest.rateLimitStatus = passed->rateLimitStatus;
}

void RequestPipeline::checkBody(const Head& head, RequestContext& context) {
  const bool isReport = context.route->scope == Scope::worker && context.apiRequest.method == "POST";
  if (context.route->needsBody || isReport) context.refusal = unreadableForm(head, context.apiRequest.path);
  if (context.refusal) return;
  const auto length = head.hasContentLength() ? static_cast<std::size_t>(head.getContentLength64()) : std::size_t{0};
  if (length > context.route->bodyLimit) {
    context.refusal = tooLarge(context.apiRequest.path, context.route->bodyLimit);
  } else if (length > kFreeBody &&
             !bodyMemory_.hasRoom(context.apiRequest.endpoint ? context.apiRequest.endpoint->spec.id : "", length)) {
    context.refusal = noBodyMemory(context.apiRequest.path, bodyMemory_);
  } else if (context.route->needsBody && !head.hasContentLength() && !head.getChunkedTransferEncoding()) {
    context.refusal = errorResponse(context.apiRequest.path, 400,
                                    "the body has no length: send Content-Length or Transfer-Encoding: chunked");
  }
}

RequestHandler::Progress RequestPipeline::serve(RequestContext& context, Exchange exchange) noexcept {
  using Progress = RequestHandler::Progress;
  context.mayBlock = exchange.extension().client().mayBlock();
  if (context.apiRequest.key) exchange.extension().noteKey();
  try {
    if (context.isOpen) return sendParts(context, exchange);
    std::optional<ApiResponse> response = respond(context, exchange);
    if (!response && !context.pending) return Progress::waitsForInput;
    if (!response) return context.pending->progress();
    addRequestHeaders(*response, context.apiRequest);
    cors_.addTo(*response, exchange.head().get("Origin", ""));
    context.isOpen = response->isOpen;
    exchange.send(*std::move(response));
    if (context.isOpen) return sendParts(context, exchange);
  } catch (const std::exception& error) {
    // No whole answer can be sent: memory is missing, or the connection broke.
    log_.write(LogLevel::debug, "http.broken", error.what());
    exchange.abandon();
  } catch (...) {
    log_.write(LogLevel::error, "http.fault", kNoException);
    exchange.abandon();
  }
  return Progress::answered;
}

RequestHandler::Progress RequestPipeline::sendParts(RequestContext& context, Exchange& exchange) {
  context.apiRequest.client = &exchange.extension().client();
  while (!exchange.hasRest()) {
    if (isRevoked(exchange.head(), context)) {
      exchange.abandon();
      return RequestHandler::Progress::answered;
    }
    auto part = context.pending->nextPart(context.apiRequest);
    if (!part) return RequestHandler::Progress::waitsForResume;
    const bool isLast = part->isLast;
    exchange.sendPart(*std::move(part));
    if (isLast || exchange.isBroken()) return RequestHandler::Progress::answered;
  }
  return RequestHandler::Progress::waitsForOutput;
}

// Returns the answer: a refusal, the answer of the route, or 500 if a part of the server throws; no value while the
// request has to wait. After a fault while the answer is counted the work of the route may be done: a 500 always leaves
// that open (core/http/API.md, "Statuses").
std::optional<ApiResponse> RequestPipeline::respond(RequestContext& context, Exchange& exchange) {
  try {
    if (!context.refusal && !context.pending) {
      context.refusal = exchange.readBody(context.apiRequest, context.route->bodyLimit, bodyMemory_);
      if (!context.refusal && exchange.isPaused()) {
        context.isLate = true;
        return std::nullopt;
      }
      std::string& body = context.apiRequest.body;
      body.erase(0, body.size() - withoutByteOrderMark(body).size());
      if (!context.refusal && context.isLate) checkAgain(exchange.head(), context);
    }
    context.apiRequest.client = &exchange.extension().client();
    const EndpointPtr& endpoint = context.apiRequest.endpoint;
    context.apiRequest.room.use(answerMemory_, endpoint ? std::string_view(endpoint->spec.id) : std::string_view());
    // A submission that waits for the storage is short, and the job is accepted in any case.
    const bool isSubmitted =
        context.pending && context.pending->progress() == RequestHandler::Progress::waitsForStorage;
    if (context.pending && !isSubmitted && isRevoked(exchange.head(), context)) {
      context.pending.reset();
      return std::move(context.refusal);
    }
    const bool isFinal = context.refusal && context.refusals == nullptr;
    std::optional<ApiResponse> response = isFinal ? std::move(context.refusal) : runRoute(context);
    if (!response) return std::nullopt;
    if (!response->isOpen) context.pending.reset();
    countResponse(context.apiRequest, *response);
    return response;
  } catch (const std::exception& error) {
    return ownFault(context.apiRequest, error.what());
  } catch (...) {
    return ownFault(context.apiRequest, kNoException);
  }
}

// A body may take minutes to come. The call begins with its last byte: the key must be valid then, and the endpoint
// there, with its present filters.
void RequestPipeline::checkAgain(const Head& head, RequestContext& context) {
  try {
    authenticate(head, context);
    if (!context.refusal) findEndpoint(head, context);
  } catch (const StorageError& error) {
    context.refusal = storageFault(context.apiRequest, error);
  }
}

// Asks for the key again when a waiting call goes on, or sends events: a worker whose key was revoked gets no job, and
// a caller no output.
bool RequestPipeline::isRevoked(const Head& head, RequestContext& context) {
  if (context.route == nullptr || context.route->scope == Scope::none) return false;
  const auto now = std::chrono::steady_clock::now();
  if (context.route->scope != Scope::worker && now - context.checkedAt < kKeyHolds) return false;
  context.checkedAt = now;
  try {
    authenticate(head, context);
  } catch (const StorageError&) {
    return false;  // the keys cannot be read now: the answer to the begin of the call counts
  }
  return context.refusal.has_value();
}

RouteResult RequestPipeline::enterRoute(RequestContext& context) {
  if (!context.refusal) return context.route->run(context.apiRequest);
  ApiResponse refusal = *std::move(context.refusal);
  context.refusal.reset();
  return context.refusals->answer(context.apiRequest, std::move(refusal));
}

std::optional<ApiResponse> RequestPipeline::runRoute(RequestContext& context) {
  try {
    if (context.pending) return context.pending->poll(context.apiRequest);
    RouteResult result = enterRoute(context);
    if (auto* response = std::get_if<ApiResponse>(&result)) return std::move(*response);
    auto* open = std::get_if<OpenAnswer>(&result);
    context.pending =
        open != nullptr ? std::move(open->rest) : std::get<std::unique_ptr<PendingCall>>(std::move(result));
    // A waiting call has read its body, and so many calls may wait that none of them keeps a body of up to 1 MB.
    std::string().swap(context.apiRequest.body);  // an assignment would keep the memory
    context.apiRequest.bodyMemory.release();
    if (open != nullptr) return std::move(open->begin);
    return std::nullopt;
  } catch (const StorageError& error) {
    return storageFault(context.apiRequest, error);
  } catch (const FilterError& error) {
    return ownFault(context.apiRequest, error.what(), error.what());
  } catch (const std::exception& error) {
    return ownFault(context.apiRequest, error.what());
  } catch (...) {
    return ownFault(context.apiRequest, kNoException);
  }
}

ApiResponse RequestPipeline::ownFault(const ApiRequest& apiRequest, const std::string& what, const std::string& told) {
  const std::string id = randomHex(8);
  log_.write(LogLevel::error, "http.fault",
             apiRequest.method + " " + apiRequest.path + " (request " + id + "): " + what);
  return errorResponse(apiRequest.path, 500, told + "; the log has the reason under request " + id);
}

}  // namespace jobq
