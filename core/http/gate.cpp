#include "core/http/gate.h"

#include <Poco/Net/HTTPServerRequest.h>
#include <Poco/Net/HTTPServerResponse.h>

#include "core/base/ids.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/http/error_reply.h"
#include "core/http/exchange.h"
#include "core/http/target.h"
#include "core/jobs/admission.h"

namespace jobq {
namespace {

constexpr const char* kNoException = "a plugin threw something that is no std::exception";

}  // namespace

// The rooms that see only the head, in this order. Each may refuse; the first refusal is the answer.
const Gate::Step Gate::kRooms[] = {
    {&Gate::takeTarget, "room 1: what cannot be read cannot be judged"},
    {&Gate::findRoute, "room 1: a path that does not exist needs no key"},
    {&Gate::askWho, "room 2: before anything is told about what exists behind the door"},
    {&Gate::findEndpoint, "room 1: an unknown endpoint, told only to those who may know"},
    {&Gate::passTurnstile, "room 3: told before a byte of the body is read, and counted for those alone who may call"},
    {&Gate::measureBody, "room 1: a body that is too large, or for which there is no room, is refused unread"},
};
// Room 4 starts in the route, which reads the submission.

Gate::Visit Gate::enter(const Poco::Net::HTTPServerRequest& request) noexcept {
  Visit visit;
  try {
    for (const Step& step : kRooms) {
      (this->*step.room)(request, visit);
      if (visit.refusal) break;
    }
  } catch (const StorageError& error) {
    visit.refusal = unavailable(visit.call.path, error.what());
  } catch (const std::exception& error) {
    visit.refusal = ownFault(visit.call, error.what());
  } catch (...) {
    visit.refusal = ownFault(visit.call, kNoException);
  }
  return visit;
}

void Gate::takeTarget(const Head& head, Visit& visit) {
  visit.call.method = head.getMethod();
  // About the server as a whole (RFC 9110, 9.3.7): a ping.
  if (head.getURI() == "*") {
    visit.refusal = Reply{200, "{}", {{"Allow", "GET, HEAD, POST, PATCH, DELETE, OPTIONS"}}};
    return;
  }
  auto target = readTarget(head.getURI());
  if (!target) {
    visit.refusal = errorReply(head.getURI(), 400, "the request's target is not a valid path: encode it");
    return;
  }
  visit.call.path = std::move(target->path);
  visit.call.query = std::move(target->query);
}

void Gate::findRoute(const Head& head, Visit& visit) {
  Call& call = visit.call;
  if (head.has("Idempotency-Key")) call.idempotencyKey = head.get("Idempotency-Key");
  auto found = router_.find(call.method, call.path);
  if (auto* match = std::get_if<Router::Match>(&found)) {
    visit.route = match->route;
    call.params = std::move(match->params);
  } else if (const auto* wrong = std::get_if<Router::WrongMethod>(&found)) {
    if ((visit.refusal = answerPreflight(head, wrong->allow))) return;
    visit.refusal = errorReply(call.path, 405, clipped(call.method) + " is not allowed here: use " + wrong->allow);
    visit.refusal->headers.emplace_back("Allow", wrong->allow);
  } else {
    visit.refusal = errorReply(call.path, 404, "there is nothing at " + clipped(call.path) + ": check the path");
  }
}

// A browser asks before it sends a page's call to another origin, and sends no key with the question.
std::optional<Reply> Gate::answerPreflight(const Head& head, const std::string& allow) const {
  if (!cors_.enabled() || head.getMethod() != "OPTIONS" || !head.has("Access-Control-Request-Method")) {
    return std::nullopt;
  }
  return cors_.preflight(head.get("Origin", ""), allow, head.get("Access-Control-Request-Headers", ""));
}

void Gate::askWho(const Head& head, Visit& visit) {
  if (visit.route->scope == Scope::none) return;
  const auto endpoint = visit.call.params.find("endpoint");
  visit.call.key = keys_.authenticate(head.get("Authorization", ""), visit.route->scope,
                                      endpoint == visit.call.params.end() ? "" : endpoint->second);
  if (!visit.call.key) {
    visit.refusal = errorReply(visit.call.path, 401,
                               "the API key is missing, invalid or lacks permission: send Authorization: Bearer <key>");
    visit.refusal->headers.emplace_back("WWW-Authenticate", "Bearer realm=\"jobq\"");
  }
}

void Gate::findEndpoint(const Head&, Visit& visit) {
  const auto name = visit.call.params.find("endpoint");
  if (name == visit.call.params.end()) return;
  visit.call.endpoint = endpoints_.find(name->second);
  if (!visit.call.endpoint) {
    visit.refusal = errorReply(visit.call.path, 404,
                               "there is no endpoint " + clipped(name->second) + ": check the id in the path");
  }
}

void Gate::passTurnstile(const Head&, Visit& visit) {
  Call& call = visit.call;
  if (!visit.route->operation || !call.endpoint) return;
  auto result =
      rates_.enter(call.endpoint->id, *visit.route->operation, call.endpoint->workersMax, call.endpoint->limits);
  if (auto* refused = std::get_if<RateLimitGate::Refused>(&result)) {
    call.standing = refused->standing;
    visit.refusal =
        tooMany(call.path, refused->sentence, refused->standing ? refused->standing->retryAfter : Millis(0));
    return;
  }
  auto& passed = std::get<RateLimitGate::Passed>(result);
  call.ticket = std::move(passed.ticket);
  call.standing = passed.standing;
}

void Gate::measureBody(const Head& head, Visit& visit) {
  const auto length = head.hasContentLength() ? static_cast<std::size_t>(head.getContentLength64()) : std::size_t{0};
  if (length > visit.route->bodyLimit) {
    visit.refusal = tooLarge(visit.call.path, visit.route->bodyLimit);
  } else if (length > kFreeBody && !bodyMemory_.hasRoom(visit.call.endpoint ? visit.call.endpoint->id : "", length)) {
    visit.refusal = noBodyMemory(visit.call.path);
  } else if (visit.route->needsBody && !head.hasContentLength() && !head.getChunkedTransferEncoding()) {
    visit.refusal =
        errorReply(visit.call.path, 400, "the body has no length: send Content-Length or Transfer-Encoding: chunked");
  }
}

void Gate::serve(Visit visit, Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) noexcept {
  Exchange exchange(request, response);
  try {
    if (!visit.refusal) visit.refusal = exchange.readBody(visit.call, visit.route->bodyLimit, bodyMemory_);
    visit.call.caller = &exchange.caller();
    visit.call.answers = &answerMemory_;
    Reply reply = visit.refusal ? std::move(*visit.refusal) : runRoute(visit);
    countReply(visit.call, reply);
    if (visit.call.standing) addStanding(reply, *visit.call.standing);
    cors_.addTo(reply, request.get("Origin", ""));
    exchange.send(reply);
  } catch (const std::exception& error) {
    // The client is gone, or its connection broke: nobody is left to answer.
    log_.write(LogLevel::debug, "http.broken", error.what());
    exchange.abandon();
  }
}

// A call that its route has not counted (queue_calls.h): malformed, or of a route that leaves it to the gate. What the
// server could not do before it had understood the call does not count.
void Gate::countReply(Call& call, Reply& reply) {
  if (call.ticket.isCounted() || reply.status == 503) return;
  if (reply.status != 400 && reply.status != 408 && reply.status != 413) {
    (void)call.ticket.count(call.standing);
    return;
  }
  const auto refused = call.ticket.countMalformed();
  if (!refused) return;
  call.standing = refused->standing;
  reply = tooMany(call.path, refused->sentence, refused->standing->retryAfter);
}

Reply Gate::runRoute(Visit& visit) {
  try {
    return visit.route->run(visit.call);
  } catch (const StorageError& error) {
    return unavailable(visit.call.path, std::string("the storage cannot do this now: ") + error.what());
  } catch (const FilterError& error) {
    return ownFault(visit.call, error.what(), error.what());
  } catch (const std::exception& error) {
    return ownFault(visit.call, error.what());
  } catch (...) {
    return ownFault(visit.call, kNoException);
  }
}

Reply Gate::ownFault(const Call& call, const std::string& what, const std::string& told) {
  const std::string id = randomHex(8);
  log_.write(LogLevel::error, "http.fault", call.method + " " + call.path + " (request " + id + "): " + what);
  return errorReply(call.path, 500, told + "; the log has the reason under request " + id);
}

}  // namespace jobq
