// Room 1 (front door) and the order of the rooms behind it.
#pragma once

#include <optional>
#include <string>

#include "core/auth/api_keys.h"
#include "core/limits/rate_limit_gate.h"
#include "core/http/body_memory.h"
#include "core/http/budget.h"
#include "core/http/call.h"
#include "core/http/cors.h"
#include "core/http/router.h"
#include "jobq/log.h"

namespace Poco::Net {
class HTTPServerRequest;
class HTTPServerResponse;
}  // namespace Poco::Net

namespace jobq {

class EndpointRegistry;

/// Any number of threads, one request each.
class Gate {
 public:
  /// A request on its way through the rooms. `refusal` is set as soon as one of them says no, or has
  /// the answer.
  struct Visit {
    Call call;
    const Route* route = nullptr;
    std::optional<Reply> refusal;
  };

  /// `bodyMemory`: what all large bodies may take together while they are read; `answerMemory`: what large answers may
  /// take until they were sent.
  Gate(const Router& router, ApiKeys& keys, const EndpointRegistry& endpoints, RateLimitGate& rates, BodyMemory& bodyMemory,
       Budget& answerMemory, const CorsPolicy& cors, Log& log)
      : router_(router),
        keys_(keys),
        endpoints_(endpoints),
        rates_(rates),
        bodyMemory_(bodyMemory),
        answerMemory_(answerMemory),
        cors_(cors),
        log_(log) {}

  /// Everything that can be judged by the head alone, before a byte of the body is read (and before `100 Continue`).
  Visit enter(const Poco::Net::HTTPServerRequest& request) noexcept;

  /// Reads the body, runs the route, sends the reply.
  void serve(Visit visit, Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response) noexcept;

 private:
  using Head = Poco::Net::HTTPServerRequest;
  using Room = void (Gate::*)(const Head&, Visit&);
  struct Step {
    Room room;
    const char* reason;
  };
  static const Step kRooms[];

  void takeTarget(const Head& head, Visit& visit);
  void findRoute(const Head& head, Visit& visit);
  std::optional<Reply> answerPreflight(const Head& head, const std::string& allow) const;
  void askWho(const Head& head, Visit& visit);
  void findEndpoint(const Head& head, Visit& visit);
  void passTurnstile(const Head& head, Visit& visit);
  void measureBody(const Head& head, Visit& visit);

  Reply runRoute(Visit& visit);
  static void countReply(Call& call, Reply& reply);
  Reply ownFault(const Call& call, const std::string& what, const std::string& told = "the server failed");

  const Router& router_;
  ApiKeys& keys_;
  const EndpointRegistry& endpoints_;
  RateLimitGate& rates_;
  BodyMemory& bodyMemory_;
  Budget& answerMemory_;
  const CorsPolicy& cors_;
  Log& log_;
};

}  // namespace jobq
