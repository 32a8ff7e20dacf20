// Room 1 (front door) and the order of the rooms behind it.
#pragma once

#include <optional>
#include <string>

#include "core/auth/api_keys.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/cors.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/limits/rate_limit_gate.h"
#include "jobq/log.h"

namespace Poco::Net {
class HTTPServerRequest;
class HTTPServerResponse;
}  // namespace Poco::Net

namespace jobq {

class EndpointRegistry;

/// Any number of threads, one request each.
class RequestPipeline {
 public:
  /// A request on its way through the rooms. `refusal` is set as soon as one of them says no, or has
  /// the answer.
  struct RequestContext {
    ApiRequest call;
    const Route* route = nullptr;
    std::optional<ApiResponse> refusal;
  };

  /// `bodyMemory`: what all large bodies may take together while they are read; `answerMemory`: what large answers may
  /// take until they were sent.
  RequestPipeline(const Router& router, ApiKeys& keys, const EndpointRegistry& endpoints, RateLimitGate& rates,
                  BodyMemory& bodyMemory, Budget& answerMemory, const CorsPolicy& cors, Log& log)
      : router_(router),
        keys_(keys),
        endpoints_(endpoints),
        rates_(rates),
        bodyMemory_(bodyMemory),
        answerMemory_(answerMemory),
        cors_(cors),
        log_(log) {}

  /// Everything that can be judged by the head alone, before a byte of the body is read (and before `100 Continue`).
  RequestContext judgeHead(const Poco::Net::HTTPServerRequest& request) noexcept;

  /// Reads the body, runs the route, sends the reply.
  void serve(RequestContext context, Poco::Net::HTTPServerRequest& request,
             Poco::Net::HTTPServerResponse& response) noexcept;

 private:
  using Head = Poco::Net::HTTPServerRequest;
  using Stage = void (RequestPipeline::*)(const Head&, RequestContext&);
  struct NamedStage {
    Stage stage;
    const char* reason;
  };
  static const NamedStage kStages[];

  void parseTarget(const Head& head, RequestContext& context);
  void findRoute(const Head& head, RequestContext& context);
  std::optional<ApiResponse> answerPreflight(const Head& head, const std::string& allow) const;
  void authenticate(const Head& head, RequestContext& context);
  void findEndpoint(const Head& head, RequestContext& context);
  void limitRate(const Head& head, RequestContext& context);
  void checkBodySize(const Head& head, RequestContext& context);

  ApiResponse runRoute(RequestContext& context);
  static void countResponse(ApiRequest& call, ApiResponse& reply);
  ApiResponse ownFault(const ApiRequest& call, const std::string& what, const std::string& told = "the server failed");

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
